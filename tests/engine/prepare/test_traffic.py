"""What a plan will send, by path and by host, and how much needs --yes."""

import pytest

from benchctl.engine.prepare.planning import planned
from benchctl.engine.prepare.volume import (
    ASSUMED_BPS,
    Path,
    check_traffic,
    expected_traffic,
    over_limit,
)
from benchctl.errors import UsageError
from benchctl.report.lines.plan import start_text

PROFILE = """\
[hosts.oslo]
ssh = "oslo"
address = "192.0.2.1"
[hosts.lima]
ssh = "lima"
address = "192.0.2.2"
[servers.far]
host = "far.test"
[flows.main]
backend = "simpleperf"
duration = "10s"
"""
KNOWN = 10 * 80e6 / 8
"""The bytes of 10 s at 80 Mbit/s."""
OPEN = 10 * ASSUMED_BPS / 8


@pytest.fixture
def plan(tmp_path):
    def make(text, repeats=None, **options):
        path = tmp_path / "p.toml"
        path.write_text(PROFILE + text)
        return planned(str(path), None, None, repeats, yes=False, **options)

    return make


def paths(prepared):
    return {tuple(path): amount for path, amount in expected_traffic(prepared).paths.items()}


def test_data_is_counted_on_its_path_and_at_both_hosts(plan):
    text = 'rate = "80Mbit"\n[axes]\npair = { mesh = ["oslo", "lima"] }\n'
    made = expected_traffic(plan(f'{text}direction = ["send", "receive"]\n', repeats=3))
    # A pair sends one way, and receives the other way.
    assert made.paths[Path("oslo", "lima")].known_bytes == pytest.approx(6 * KNOWN)
    sent, received = made.hosts["lima"]
    assert (sent.known_bytes, received.known_bytes) == (
        pytest.approx(6 * KNOWN),
        pytest.approx(6 * KNOWN),
    )
    assert made.between.known_bytes == pytest.approx(12 * KNOWN)


def test_a_flow_that_only_the_network_limits_is_taken_at_an_assumed_rate(plan):
    ((path, amount),) = paths(plan('from = "oslo"\nto = "lima"\n')).items()
    assert path == ("oslo", "lima")
    assert (amount.known_bytes, amount.assumed_bytes) == (0, pytest.approx(OPEN))
    assert str(amount) == "unlimited"
    assert amount.at_assumed == "1.16 GiB at 1.00 Gbit/s"


def test_both_directions_are_two_paths(plan):
    made = paths(plan('from = "oslo"\nto = "lima"\ndirection = "both"\nrate = "80Mbit"\n'))
    assert {path: one.known_bytes for path, one in made.items()} == {
        ("oslo", "lima"): pytest.approx(KNOWN), ("lima", "oslo"): pytest.approx(KNOWN),
    }  # fmt: skip


def test_what_stays_on_one_machine_is_on_no_path(plan, tmp_path):
    assert not paths(plan('rate = "80Mbit"\n'))
    assert not paths(plan('from = "oslo"\nto = "oslo"\n'))
    lab = 'from = "sender"\nto = "receiver"\n[lab]\ntopology = "pair"\n'
    path = tmp_path / "lab.toml"
    path.write_text(f'[flows.main]\nbackend = "simpleperf"\n{lab}')
    assert not paths(planned(str(path), None, None, None, yes=False))


def test_a_server_of_others_is_the_end_of_a_path(plan):
    assert [*paths(plan('to = "far"\n'))] == [("local", "far")]


@pytest.mark.parametrize(("trials", "needs"), [(80, False), (81, True)])
def test_more_than_100_gb_need_a_yes(plan, trials, needs):
    made = plan('from = "oslo"\nto = "lima"\n', repeats=trials)  # of 1.25 GB each
    assert bool(over_limit(made)) is needs
    if needs:
        with pytest.raises(UsageError, match=r"94.3 GiB at 1.00 Gbit/s; more than .* needs --yes"):
            check_traffic(made)


def test_repeats_until_a_figure_is_known_count_with_the_most_of_them(plan):
    text = 'from = "oslo"\nto = "lima"\n[run.repeats]\nuntil = "1%"\nof = "throughput_bps"\n'
    assert not over_limit(plan(f"{text}most = 80\n"))
    assert over_limit(plan(f"{text}most = 81\n")).startswith("at most 94.3 GiB at 1.00 Gbit/s")


def test_a_start_says_how_long_from_where_to_where_and_how_much(plan):
    assert start_text(plan('to = "far"\n')) == (
        "1 trial, 10.0 s, from this machine to far (far.test); 1.16 GiB at 1.00 Gbit/s, assumed"
    )
    both = start_text(plan('from = "oslo"\nto = "far"\ndirection = "both"\nrate = "80Mbit"\n'))
    assert both == "1 trial, 10.0 s, between oslo (192.0.2.1) and far (far.test); 191 MiB"
    # A processor bounds the rest: a guess would be too much.
    assert start_text(plan("")) == "1 trial, 10.0 s, on this machine; no traffic leaves it"


def test_the_start_of_a_search_says_its_longest_time_beside_its_most_traffic(plan):
    text = 'to = "far"\n[run.repeats]\nuntil = "1%"\nof = "throughput_bps"\nmost = 10\n'
    assert start_text(plan(text, repeats=None)) == (
        "3 trials or more, at most 100 s, from this machine to far (far.test);"
        " at most 11.6 GiB at 1.00 Gbit/s, assumed"
    )


def test_in_a_lab_its_links_bound_what_is_sent():
    """In 50 s at 100 Mbit/s: 25 s for each of two congestion controls, less the headers."""
    made = planned("congestion-control/b1-one-pair", None, None, None, yes=False)
    whole = expected_traffic(made).whole
    assert whole.assumed_bytes == 0
    assert 0.9 * 50 * 100e6 / 8 < whole.known_bytes < 50 * 100e6 / 8
    assert start_text(made) == (
        "2 trials, 50.0 s, in a lab on this machine; at most 570 MiB in the lab, none leaves it"
    )
