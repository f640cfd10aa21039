"""One trial in full: its text, and the window that Enter opens."""

from contextlib import closing

import pytest
from tui.driving import Clock, drive, open_live, open_replay, own_ids, press, settle, shown
from tui.made_runs import BEGIN, MadeRun, whole_run

from benchctl.errors import StoreError
from benchctl.report.lines.spans import to_text
from benchctl.report.lines.trial import trial_lines
from benchctl.report.text.detail import read_details
from benchctl.run.record import Figure, FlowEvent, Happening, TracedHop
from benchctl.store.locks import Liveness
from benchctl.store.read import Reader
from benchctl.tui.screens.windows.detail import TrialWindow


@pytest.fixture
def retried(store, monkeypatch):
    """Return a run whose first trial failed once, and is tried again since 3 s."""
    monkeypatch.setattr(Liveness, "is_alive", lambda self, run_id: True)
    made = MadeRun(store)
    made.begin(pid=4711)
    made.begin_trial()
    made.measure(2.0)
    fail(made)
    yield made
    made.close()


def fail(made):
    """Let the present attempt of the trial fail."""
    made.recorder.update_flow(
        made.flows["main"], status="failed", error="the server is busy", hint="try again later",
        exit_code=1, stderr="iperf3: error - busy\nbye\n", effective={"window_bytes": 425984},
        started_time=made.began, finished_time=made.now,
        server=["iperf3", "-s", "--one-off"],
    )  # fmt: skip
    made.recorder.add_note("the clock leapt", "warning", made.now, None, made.flows["main"])
    made.recorder.update_flow(
        made.flows["ping"], status="interrupted", finished_time=made.now,
        error="ended because another flow of its trial failed",
    )  # fmt: skip
    made.recorder.flush()


def texts(store, position=0):
    with closing(Reader(store)) as reader:
        return [
            to_text([line])
            for line in trial_lines(next(read_details(reader, reader.run(1), position)))
        ]


def test_a_trial_in_full_has_its_attempts_with_all_that_explains_them(retried, store):
    retried.now += 1.0
    retried.begin_trial(attempt=2)
    retried.measure(20.0)
    retried.end_trial()
    lines = texts(store)
    assert lines[0] == "[1/8] server=paris streams=1: ok"
    first, second = (lines.index(f"  main, attempt {n}: {status}") for n, status in (
        (1, "failed: the server is busy, exit code 1"), (2, "ok, exit code 0"),
    ))  # fmt: skip
    told = lines[first:second]
    for line in (
        "    try again later", "    server $ iperf3 -s --one-off", "    $ iperf3 paris",
        "    stderr: iperf3: error - busy", "    stderr: bye", "    in force  window 425984 B",
    ):  # fmt: skip
        assert line in told
    assert any(line.endswith(" for 2.00 s") for line in told)
    assert any(line.startswith("    send       throughput_bps = 9") for line in lines[second:])
    assert any(line.startswith("    send       limit not known: 9") for line in lines[second:])
    assert lines[-1].endswith(" warning: the clock leapt")


def test_a_trial_in_full_has_the_route_of_a_flow_hop_by_hop(retried, store):
    probes = {"hop_probes": Figure(3.0, "samples")}
    route = [TracedHop({"10.0.0.2": 1, "10.0.0.6": 2}, probes), TracedHop({})]
    retried.recorder.update_flow(retried.flows["ping"], route=route)
    heads, _, *rows = [line.split() for line in texts(store)][-5:-1]
    assert heads == ["hop", "address", "hop_probes"]
    assert rows == [["1", "10.0.0.2", "(1),", "10.0.0.6", "(2)", "3"], ["2", "*", "-"]]


def test_what_happened_within_a_flow_stands_below_its_figures(store):
    made = MadeRun(store)
    made.begin()
    made.begin_trial()
    stall = FlowEvent("send", "throughput_bps", Happening.STALL, 4.0, 6.5, 94e6, 0.0)
    made.recorder.add_events(made.flows["main"], [stall])
    made.close()
    assert "    send       at 4.00 s throughput: stall for 2.50 s, before at 94.0 Mbit/s" in (
        texts(store)
    )


def test_what_was_asked_stands_beside_what_is_in_force(store):
    made = MadeRun(store, parameters={"window": "256K", "congestion_control": "reno"})
    made.begin()
    made.begin_trial()
    made.recorder.update_flow(
        made.flows["main"], requested={"window": 262144.0, "congestion_control": "reno"},
        effective={"window_bytes": 425984, "congestion_control": "reno", "no_delay": False},
    )  # fmt: skip
    made.close()
    lines = texts(store)
    place = lines.index("    asked     window 256K, congestion_control reno")
    assert lines[place + 1 : place + 3] == [
        "    ≠ window: asked 256K, in force 425984 B",
        "    in force  window 425984 B, congestion_control reno, no_delay no",
    ]


def test_what_a_tool_measured_or_rounded_is_as_asked_unless_it_is_far_off(store):
    made = MadeRun(store, parameters={"interval": "200ms", "timeout": "2s", "deadline": "1ms"})
    made.begin()
    made.begin_trial()
    made.recorder.update_flow(
        made.flows["main"], requested={"interval": 0.2, "timeout": 2, "deadline": 0.001},
        effective={"interval_s": 0.204444, "timeout_s": 2.0001, "deadline_s": 0.0011},
    )  # fmt: skip
    made.close()
    assert [line for line in texts(store) if "≠" in line] == [
        "    ≠ deadline: asked 1ms, in force 0.0011 s"
    ]


def test_a_trial_that_was_not_tried_shows_what_was_asked(store):
    MadeRun(store, parameters={"window": "256K"}).close()
    assert texts(store, 7) == [
        "[8/8] server=tashkent streams=4 repeat 2: planned",
        "  not started",
        "  main: iperf3, local to paris, send",
        "    asked     window 256K",
        "  ping: ping, local to paris, round-trip",
    ]


def test_while_attempts_fail_the_live_screen_says_so_at_once_and_why(retried, store):
    clock = Clock(retried.now)

    async def script(pilot):
        why = "attempt 1 failed: main: the server is busy; try again later"
        assert f"✗ {why}" in shown(pilot)
        retried.now += 1.0
        retried.begin_trial(attempt=2)
        retried.measure(1.0)
        clock.time = retried.now
        await settle(pilot)
        assert why in shown(pilot)
        fail(retried)
        await settle(pilot)
        assert "attempt 2 failed: main" in shown(pilot)
        retried.begin_trial(attempt=3)
        retried.measure(20.0)
        retried.end_trial()
        clock.time = retried.now
        await settle(pilot)
        assert "failed" not in shown(pilot)

    drive(store, open_live(store, 1, clock), script, clock=clock, size=(120, 40))


def test_enter_on_any_trial_opens_it_and_the_window_follows_it(retried, store):
    clock = Clock(retried.now)

    async def script(pilot):
        opened = await press(pilot, "enter")
        assert "Trial 1 of 8" in opened
        assert "escape closes   [ trial before   ] trial after" in opened
        assert "main, attempt 1: failed: the server is busy, exit code 1" in opened
        assert "iperf3 -s --one-off" not in opened
        assert "iperf3 -s --one-off" in await press(pilot, "A")
        await press(pilot, "A")
        retried.begin_trial(attempt=2)
        retried.recorder.flush()
        pilot.app.screen.tick()
        await pilot.pause()
        assert "main, attempt 2: running" in await press(pilot, "end")
        assert "Trial 2 of 8" in await press(pilot, "right_square_bracket")
        assert "not started" in shown(pilot)
        assert "Trial 1 of 8" in await press(pilot, "left_square_bracket")
        assert "Trial 1 of 8" in await press(pilot, "left_square_bracket")
        assert "Trial 1 of 8" not in await press(pilot, "enter")
        assert "Trial 8 of 8" in await press(pilot, "end", "enter")
        await press(pilot, "escape")
        assert own_ids(TrialWindow) == {"trial.before", "trial.after", "trial.all", "trial.close"}

    drive(store, open_live(store, 1, clock), script, clock=clock, size=(120, 40))


def test_the_window_of_a_store_that_cannot_be_read_says_so_and_tries_again(store, monkeypatch):
    whole_run(store)

    def locked(self):
        raise StoreError("store: database is locked")

    async def script(pilot):
        await press(pilot, "enter")
        with monkeypatch.context() as patch:
            patch.setattr(Reader, "changes", locked)
            pilot.app.screen.tick()
            await pilot.pause()
            assert "! store: database is locked; trying again" in shown(pilot)
        pilot.app.screen.tick()
        await pilot.pause()
        assert "main, attempt 1: ok" in shown(pilot)

    clock = Clock(BEGIN + 5)
    drive(store, open_replay(store, 1, clock, 5.0), script, clock=clock)


@pytest.mark.parametrize("size", [(20, 5), (10, 3), (300, 90)])
def test_any_size_of_terminal_is_survived(store, size):
    whole_run(store)

    async def script(pilot):
        await press(pilot, "enter", "pagedown", "right_square_bracket", "escape")

    clock = Clock(BEGIN + 5)
    drive(store, open_replay(store, 1, clock, 5.0), script, size=size, clock=clock)


def test_folded_the_flow_that_failed_is_first_with_its_reason_and_what_helps(retried, store):
    with closing(Reader(store)) as reader:
        detail = next(read_details(reader, reader.run(1), 0))
    lines = [to_text([line]) for line in trial_lines(detail, folded=True)]
    assert [line for line in lines if "retr" not in line][2:4] == [
        "  main, attempt 1: failed: the server is busy, exit code 1",
        "    try again later",
    ]
    assert "  ping, attempt 1: interrupted: ended because another flow of its trial failed" in lines
    assert not any("$" in line or "stderr" in line or "in force" in line for line in lines)
