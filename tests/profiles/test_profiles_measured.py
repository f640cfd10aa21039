"""Short forms of shipped profiles in real labs: the shapes that theory predicts, in wide bounds.

`docs/experiments.md` compares figures of full length with theory. Seconds on a busy machine are
enough for shapes, not for figures. Those with narrow bounds are quiet.
"""

import csv
import io
import json
import os
import subprocess
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from lab.lab_support import NOBODY, ordinary_user
from waiting import COMMAND_S

from benchctl.units import format_duration

pytestmark = [pytest.mark.netns, pytest.mark.once]

ALGORITHMS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
LABS = Path(__file__).parents[2] / "profiles" / "labs"
MBIT = 1e6


class Run:
    """One run of a profile by a way to run commands: its document, or why there is none."""

    def __init__(self, command, profile, *arguments):
        self.command = command
        done = command("run", profile, "--quiet", "--format", "json", *arguments)
        assert done.returncode == 0, done.stderr
        self.document = json.loads(done.stdout)
        self.trials = self.document["trials"]
        assert {trial["status"] for trial in self.trials} == {"ok"}
        assert self.document["run"]["trials"] == len(self.trials)

    def flows(self, **point):
        """Return the entries of all flows at a point, by name."""
        return {
            flow["name"]: flow
            for trial in self.trials
            if point.items() <= trial["point"].items()
            for flow in trial["flows"]
        }


def environment_with(store):
    return {**os.environ, "BENCHCTL_STORE": str(store), "COLUMNS": "200"}


@pytest.fixture
def measure(tmp_path, fork_server):
    def command(*words):
        argv = ["benchctl", *map(str, words)]
        return fork_server.run(argv, tmp_path, environment_with(tmp_path / "runs.sqlite"))

    return partial(Run, command)


def throughput(flow):
    return flow["metrics"]["throughput_bps"]


def test_pairs_begin_together_and_share_their_bottleneck(measure):
    run = measure(
        "portfolio/a4-multiplexing", "--set", "duration=3s", "--set", "lab.verify=false",
        "--only", "case=three pairs,nothing shared",
    )  # fmt: skip
    shared = run.flows(case="three pairs")
    pairs = [shared[name] for name in ("h1-h4", "h2-h5", "h3-h6")]
    together = sum(map(throughput, pairs))
    assert 0.5 * 28.69 * MBIT < together < 1.02 * 28.69 * MBIT
    for pair in pairs:
        assert pair["expected"]["throughput_bps"] == pytest.approx(28.69 * MBIT / 3, rel=1e-3)
    assert pairs[0]["reported"] == {"throughput_bps": 9.85 * MBIT}
    alone = run.flows(case="nothing shared")
    assert throughput(alone["h1-h4"]) > 1.1 * throughput(alone["h8-h9"])
    for name, flow in (shared | alone).items():
        if name.startswith("ping-"):
            # Below theory nothing is possible; above it is what waits in the queues.
            assert flow["metrics"]["rtt_s"]["min"] >= flow["expected"]["rtt_s"]
    # A machine with other work may wake a process late, but not in each trial; ENTER by hand is a
    # second apart.
    assert 0 <= min(trial["start_skew_s"] for trial in run.trials) < 0.25
    for trial in run.trials:
        assert trial["fairness_jain"] > 0.5
        assert trial["reported"]["fairness_jain"] > 0.9
    heads = run.command("export", "last", "--format", "table").stdout.splitlines()[0].split()
    assert heads[heads.index("throughput") :][:3] == ["throughput", "expected", "reported"]


def test_loss_hurts_reno_and_not_bbr(measure):
    algorithms = ALGORITHMS.read_text().split()
    if "bbr" not in algorithms:
        pytest.skip(f"needs BBR: modprobe tcp_bbr (this kernel has {', '.join(algorithms)})")
    run = measure(
        "congestion-control/b2-loss", "--set", "duration=3s", "--set", "lab.verify=false",
        "--only", "loss=2%", "--set", "expect=[]",
    )  # fmt: skip
    reno, bbr = (throughput(run.flows(congestion_control=name)["main"]) for name in ("reno", "bbr"))
    assert bbr > 3 * reno


def test_nobody_gets_more_than_the_way_to_the_bottleneck_allows(measure):
    run = measure(
        "congestion-control/b4-unequal-access", "--set", "duration=3s", "--set", "lab.verify=false",
        "--only", "congestion_control=reno",
    )  # fmt: skip
    shares = [throughput(run.flows()[pair]) / MBIT for pair in ("pair1", "pair2", "pair3")]
    assert shares == sorted(shares)
    assert 6 < shares[0] < 1.02 * 9.56
    assert 15 < shares[1] < 1.02 * 38.3
    assert sum(shares) < 1.02 * 95.6


@pytest.mark.quiet
def test_throughput_and_window_come_every_25_ms(measure):
    run = measure(
        "tcp-options/e1-sack-initial-window", "--set", "duration=2s", "--set", "lab.verify=false",
        "--only", "sack=off", "--only", "initial_window=1",
    )  # fmt: skip
    rows = [
        row
        for row in csv.DictReader(io.StringIO(run.command("export", "--samples").stdout))
        if row["omitted"] == "0"
    ]
    for metric in ("throughput_bps", "cwnd_bytes"):
        spans = [(float(r["start_s"]), float(r["end_s"])) for r in rows if r["metric"] == metric]
        # Where the machine stands still, nobody looks at the window; the others keep their times.
        places = [begin / 0.025 for begin, _ in spans]
        assert places == pytest.approx([round(place) for place in places], abs=1e-4)
        assert places == sorted({*places})
        assert len(spans) > 40
        assert median(end - begin for begin, end in spans) == pytest.approx(0.025, abs=0.002)
    # The loss model expects a mean over many losses; in 2 s it may lose nothing.
    assert 0 < throughput(run.flows()["main"]) < 1.02 * 8 * MBIT


def test_a_receiver_that_stops_reading_closes_its_window(measure):
    run = measure(
        "tcp-options/e2-packets", "--set", "bytes=150kB", "--set", "lab.verify=false",
        "--set", "pause_reading=100ms:1500ms",
    )  # fmt: skip
    main = run.flows()["main"]
    assert main["metrics"]["bytes_received"] == 150_000
    assert main["metrics"]["rwnd_limited_s"] > 0
    assert main["metrics"]["peer_window_bytes"]["min"] == 0
    # What one end saw and the other did not is what the link lost.
    at = {one["host"]: one for one in main["captures"]}
    lost = {
        way["from"]: way["lost"] + way["dropped"] for trial in run.trials for way in trial["links"]
    }
    assert at["sender"]["dropped"] == at["receiver"]["dropped"] == 0
    assert at["sender"]["packets"] > 150_000 / 1260
    missing = at["sender"]["packets"] - at["receiver"]["packets"]
    assert missing == lost["sender"] - lost["receiver"]
    # The largest connection is that of the data; the other controls it.
    ours, theirs = (at[host]["findings"][0] for host in ("sender", "receiver"))
    assert [one["directions"][0]["unique_bytes"] for one in (ours, theirs)] == [150_000] * 2
    again = ours["directions"][0]["retransmissions"]["count"]
    assert again == main["metrics"]["retransmits"]
    late_s = sum(way["late_max_s"] for trial in run.trials for way in trial["links"])
    assert 0.05 <= ours["directions"][0]["rtt_s"]["min"] <= 0.051 + late_s
    [pair] = [one for one in main["paired"] if one["ends"] == ours["ends"]]
    data, answers = pair["directions"]
    assert (data["unseen"], answers["unseen"]) == (0, 0)
    # Of the last acknowledgements, which nobody waits for, some may still be on the way.
    assert sum(one["bytes"] > 0 for one in data["losses"]) <= lost["sender"]
    assert lost["sender"] <= sum(one["directions"][0]["lost"] for one in main["paired"])
    assert data["owd_s"]["min"] >= answers["owd_s"]["min"] >= 0.025
    [shut] = [one for one in pair["zero_windows"] if one["at_sender"]]
    assert shut["at_sender"]["acks"] >= 1
    # Data follow the first segment by a round trip, and are read again 1.6 s after they began, or
    # later if the machine has other work. What was not read until then came before it.
    assert shut["at_receiver"]["ended_s"] - theirs["began_s"] >= 1.65
    for seen in (shut["at_sender"], shut["at_receiver"]):
        assert seen["unread_s"] < seen["began_s"] < seen["ended_s"]


def test_packets_that_left_and_never_came_are_those_that_the_emulator_dropped(measure):
    # Nothing but the queue drops frames, so no acknowledgement is lost once the data has passed.
    run = measure(
        "tcp-options/e2-packets", "--set", "bytes=300kB", "--set", "lab.verify=false",
        "--set", "pause_reading=60s:1s", "--set", "interval=10s",
        "--set", "lab.links.path.queue=8", "--set", "lab.links.path.toward.receiver.loss=0%",
    )  # fmt: skip
    main = run.flows()["main"]
    (link,) = (way for way in run.trials[0]["links"] if way["from"] == "sender")
    dropped = sum(link[name] or 0 for name in ("dropped", "lost", "missed", "refused"))
    connection = main["captures"][0]["findings"][0]
    way = connection["directions"][0]
    passed_s = connection["began_s"] + 8 * way["unique_bytes"] / way["throughput_bps"]
    losses = [one for pair in main["paired"] for one in pair["directions"][0]["losses"]]
    assert 0 < sum(one["bytes"] > 0 or one["left_s"] < passed_s for one in losses) == dropped
    # What one command prints of it: `run` has the same lines below its table.
    lost = next(pair for pair in main["paired"] if pair["ends"] == connection["ends"])
    said = run.command("show").stdout
    assert f"  {lost['directions'][0]['lost']} of " in said
    assert f"Of {format_duration(way['waiting_s'])}, {connection['ends'][0]} waited " in said


def test_a_link_fades_while_it_is_measured_and_comes_back(measure):
    changes = '[{at="1s", link="radio", loss="100%"}, {at="3s", link="radio", loss="0%"}]'
    run = measure(
        "tcp-options/e6-walking-away", "--set", "flows=ping", "--set", "duration=4s",
        "--set", "lab.verify=false", "--set", f"lab.changes={changes}",
    )  # fmt: skip
    assert run.flows()["ping"]["metrics"]["packets_lost"] > 0
    samples = csv.DictReader(io.StringIO(run.command("export", "--samples").stdout))
    answered = [float(one["start_s"]) for one in samples if one["metric"] == "rtt_s"]
    # A busy machine may change a link late: the two seconds are shorter then, or longer.
    assert max(later - one for one, later in pairwise(answered)) > 1


@pytest.mark.quiet
def test_a_long_path_ramps_up_and_drops_and_both_are_found(measure):
    # A fifth of the rates, a third of the delay: less for a busy machine, and sooner at its level.
    changes = (
        '[{at="0s", link="path", rate="20Mbit"}, {at="33%", link="path", rate="100Mbit"}, '
        '{at="75%", link="path", rate="40Mbit"}]'
    )
    run = measure(
        "long-path/d1-windows", "--set", "duration=18s", "--set", "lab.verify=false",
        "--set", f"lab.changes={changes}", "--repeat", "1", "--set", "expect=[]",
        "--set", "lab.links.path.rate=100Mbit", "--set", "lab.links.path.delay=20ms",
        "--only", "direction=send", "--only", "client_window=16384x2 KB",
        "--only", "server_window=4x2 MB",
    )  # fmt: skip
    main = run.flows()["main"]
    found = {event["kind"]: event for event in main["events"]}
    ramp, drop = found["delayed ramp-up"], found["drop"]
    # A client that is started late has less of the plateau; the rest of the course stays.
    assert drop["at_s"] - ramp["at_s"] == pytest.approx((0.75 - 0.33) * 18, abs=0.8)
    assert ramp["level_after"] > 2 * ramp["level_before"]
    assert drop["level_after"] < 0.7 * drop["level_before"]
    assert main["effective"]["receiver_window_bytes"] <= 8 << 20


def test_windows_below_the_product_decide_and_above_it_the_path(measure):
    run = measure(
        "tcp-options/e4-windows", "--set", "duration=2s", "--set", "lab.verify=false",
        "--repeat", "1", "--only", "window=5000B,60000B", "--set", "expect=[]",
    )  # fmt: skip
    small, large = (run.flows(window=window)["main"] for window in ("5000B", "60000B"))
    assert throughput(small) < 1.1 * small["expected"]["throughput_bps"]
    assert throughput(large) > 2 * throughput(small)


def test_both_directions_are_measured_at_once(measure):
    run = measure(
        "tcp-options/e3-both-directions", "--set", "duration=3s", "--set", "lab.verify=false",
        "--only", "place=second", "--set", "expect=[]",
    )  # fmt: skip
    rates = {one["direction"]: throughput(one) for one in run.trials[0]["flows"]}
    assert rates.keys() == {"send", "receive"}
    assert all(7 * MBIT < rate < 1.05 * 15.3 * MBIT for rate in rates.values())


def test_udp_has_the_links_jitter_and_gives_way_to_nothing(measure):
    run = measure(
        "tcp-options/e5-udp-tcp", "--set", "duration=3s", "--set", "lab.verify=false",
        "--only", "case=side by side", "--set", "expect=[]",
    )  # fmt: skip
    udp, tcp = (run.flows()[name] for name in ("udp", "tcp"))
    assert udp["metrics"]["jitter_rfc3550_s"] > 1.5e-3
    assert throughput(udp) > 2 * throughput(tcp)


def test_an_ordinary_user_measures_in_a_lab():
    prefix = ordinary_user()
    # Not in pytest's own directory, which nobody else may enter.
    with tempfile.TemporaryDirectory() as directory:
        if os.geteuid() == 0:
            os.chown(directory, NOBODY, NOBODY)
        environment = environment_with(Path(directory, "runs.sqlite"))

        def command(*words):
            return subprocess.run(
                [*prefix, "-m", "benchctl", *words],
                env=environment, capture_output=True, text=True, check=False, timeout=COMMAND_S,
            )  # fmt: skip

        run = Run(
            command, "portfolio/a1-udp", "--set", "duration=1s",
            "--set", "lab.verify=false", "--only", "path=h1-h4",
        )  # fmt: skip
    metrics = run.flows()["udp"]["metrics"]
    assert metrics["packets_received"] > 0
    assert metrics["packets_sent"] == metrics["packets_received"] + metrics["packets_lost"]
    gone = sum(
        way[name] or 0
        for way in run.trials[0]["links"] for name in ("dropped", "lost", "missed", "refused")
    )  # fmt: skip
    assert metrics["packets_lost"] <= gone + metrics["receiver_drops"]


def test_the_search_finds_the_bottleneck_of_a_path_in_a_few_tries(measure):
    run = measure(
        "portfolio/a1-rate-search", "--only", "path=h1-h9",
        "--set", "search.rate=10Mbit..40Mbit", "--set", "search.precision=20%",
        "--set", "duration=1s", "--set", "lab.verify=false", "--set", "search.most=40",
    )  # fmt: skip
    (found,) = run.document["searches"]
    assert found["outcome"] == "found"
    assert found["expected_bps"] == pytest.approx(19.44e6, rel=0.01)
    # A machine that stands still loses packets at lower rates, too. Above it the queue takes 6 % of
    # a second.
    assert 10e6 <= found["passing_bps"] < 1.08 * 19.44e6
    # Where an emulator was late, a try decides little, and is made once more.
    sure = [trial for trial in run.trials if all(link["kept"] for link in trial["links"])]
    assert len(sure) <= 11
    assert found["why"].startswith("loss ")


SHORT = ("--set", "interval=5ms", "--set", "timeout=300ms", "--set", "lab.verify=false")


@pytest.mark.parametrize(
    "backend",
    ["owamp", pytest.param("owping", marks=pytest.mark.tool("owping", "owampd"))],
)
def test_delays_of_each_way_are_the_links_with_and_without_owping(measure, backend):
    """The servers are started and ended; over IPv6, too."""
    run = measure(
        "owamp/c8-links", "--set", f"backend={backend}", *SHORT, "--set", "count=20",
        "--only", "interface=wired",
    )  # fmt: skip
    for version in (4, 6):
        for direction in ("send", "receive"):
            flow = next(
                flow for trial in run.trials for flow in trial["flows"]
                if trial["point"]["ip_version"] == version and flow["direction"] == direction
            )  # fmt: skip
            assert 0.0005 <= flow["metrics"]["owd_s"]["min"] < 0.05
            assert flow["metrics"]["hops"]["min"] == flow["metrics"]["hops"]["max"] == 2
            # What the machine delays by more than the timeout counts as lost.
            assert 0 < flow["metrics"]["packets_received"] <= 20
            assert flow["clocks"] is None


def test_clocks_that_move_from_point_to_point_are_named(measure):
    run = measure("owamp/c7-clocks", *SHORT, "--only", "count=10,100")
    told = [flow["clocks"] for trial in run.trials for flow in trial["flows"]]
    offsets = {1: 0.0496, 2: 0.05645}
    for number, trial in enumerate(run.trials, 1):
        for flow in trial["flows"]:
            sign = 1 if flow["direction"] == "send" else -1
            assert flow["metrics"]["clock_offset_s"] == pytest.approx(
                sign * offsets[number], abs=0.01
            )
    assert {one["verdict"] for one in told} == {"apart"}


STANDING_QUEUE = """
title = "A standing queue"
[lab]
topology = "access.toml"
[defaults]
from = "home"
to = "server"
[flows.load]
backend = "simpleperf"
streams = 4
window = "64K"
congestion_control = "cubic"
omit = "1s"
duration = "3s"
interval = "100ms"
probe = "100ms"
[axes]
"load.direction" = ["send", "receive"]
"""


@pytest.mark.quiet
def test_responsiveness_beside_a_known_queue_is_that_of_theory(measure, tmp_path):
    # Four windows of W bytes are under way, and the link empties them at its rate: by Little's law
    # a round trip takes 4 W / rate, of which 20 ms are the path and the rest is queue.
    (tmp_path / "access.toml").write_bytes((LABS / "access.toml").read_bytes())
    (tmp_path / "queue.toml").write_text(STANDING_QUEUE)
    queue = ("--set", "lab.links.access.queue=400", "--set", "lab.verify=false")
    for trial in measure(tmp_path / "queue.toml", *queue).trials:
        (flow,) = trial["flows"]
        window_bytes = flow["metrics"]["peer_window_bytes"]["mean"]
        theory_s = 4 * window_bytes * 8 / throughput(flow)
        assert theory_s > 0.1
        assert flow["metrics"]["responsiveness_rpm"] == pytest.approx(60 / theory_s, rel=0.2)
