"""What a person asks at first, and the lines of 80x24 that answer it without a key."""

from pathlib import Path

import pytest
from tui.conftest import PROFILE
from tui.driving import Clock, drive, open_live, open_page, open_plan, shown
from tui.made_flows import made_flows
from tui.made_runs import BEGIN, MadeRun, three_runs, whole_run

from benchctl.store.manage import set_tags

STORE = Path("runs.sqlite")
OWN = Path("profiles/two-servers.toml")
# A run of 8 trials of 20 s, 5 s after its second trial began.
NOW = BEGIN + 26.0


def start():
    """The first screen that there is."""
    return open_plan()


def start_after_failures():
    three_runs(STORE)
    return open_plan()


def plan():
    return open_plan(OWN)


def plan_to_paris():
    OWN.write_text(PROFILE.replace('backend = "toy"', 'backend = "toy"\nto = "paris"'))
    return open_plan(OWN)


def goes_on():
    made = MadeRun(STORE)
    made.begin(pid=1)
    made.begin_trial()
    made.measure(20.0)
    made.end_trial()
    made.begin_trial()
    made.measure(5.0)
    made.close()
    return made.id


def live():
    return open_live(STORE, goes_on(), Clock(NOW))


def start_beside_a_run():
    goes_on()
    return open_plan()


def summary():
    three_runs(STORE)
    return open_page(STORE, "summary", 1)


def flows_run():
    return open_live(STORE, made_flows(STORE, ended=False), Clock(BEGIN + 5.0))


def flows_ended():
    return open_page(STORE, "summary", made_flows(STORE, ended=True))


def two_runs(factor):
    """Make two runs of a profile, with eight repeats; the newer one has another rate."""
    whole_run(STORE, repeats=8)
    whole_run(STORE, repeats=8, factor=factor, name="newer", seed=8, begin=BEGIN + 3600)
    set_tags(STORE, 1, ["baseline"])


def history_of(factor):
    def history():
        two_runs(factor)
        return open_page(STORE, "history")

    return history


def summary_of(factor):
    def summary():
        two_runs(factor)
        return open_page(STORE, "summary", 2)

    return summary


def compare_of(factor):
    def compare():
        two_runs(factor)
        return open_page(STORE, "compare", 1, 2)

    return compare


# The answer of a summary.
TOP = (2, 3, 4, 5)
# The row of the third flow below the plots.
FLOWS = 23

# question, screen with its stored run, the exact phrase, the lines on which it may stand
ANSWERS = (
    ("how do I start", start, "enter asks for a host, and shows what would be measured", (11,)),
    ("how do I start", plan, "r starts 6 trials", (15, 16)),
    ("which run is going on", live, "tour 20261121-002512-7f3a", (1,)),
    ("which run is going on", start_beside_a_run, "Running now tour trial 2 of 8", (3,)),
    ("how far is it", live, "▶ running trial 2/8", (1,)),
    ("how far is it", start_beside_a_run, "trial 2 of 8", (3,)),
    ("when is it done", live, "left", (2,)),
    ("when is it done", live, "2:21", (3,)),
    ("is it slower", history_of(0.5), "slower than the baseline: 4 worse", (22, 23)),
    ("is it faster", history_of(2.0), "faster than the baseline: 4 better", (22, 23)),
    ("is it slower", summary_of(0.5), "Slower than the baseline", TOP),
    ("is it faster", summary_of(2.0), "Faster than the baseline", TOP),
    ("is it slower", compare_of(0.5), "B is slower: 4 worse", (1,)),
    ("is it faster", compare_of(2.0), "B is faster: 4 better", (1,)),
    ("what limits it", flows_ended, "Limited by: rate asked (voice, video, backup)", TOP),
    ("where is flow c's figure", flows_run, "c backup 12.3 Mbit/s", (FLOWS,)),
    ("where is flow c's figure", flows_ended, "throughput, Mbit/s", (4,)),
    ("where is flow c's figure", flows_ended, "c backup ▇ 12.3", (8,)),
    ("which trial failed", summary, "✗ failed trial 6 (server=paris, streams=4)", (22, 23)),
    ("why did it fail", summary, "main: the server is busy; try again later", (22, 23)),
    ("why did it fail", start_after_failures, "357 Mbit/s main: the server is busy", (5,)),
    ("how long will it take", plan, "2 min 00 s", (15, 16)),
    ("how much traffic will this send", plan, "no traffic leaves it", (15, 16)),
    ("how much traffic will this send", plan_to_paris, "14.0 GiB at 1.00 Gbit/s", (15, 16, 17)),
    ("from where", plan, "on this machine", (15, 16)),
    ("from where", plan_to_paris, "from this machine to paris (192.0.2.10)", (15, 16)),
)


@pytest.mark.parametrize(
    "screen", dict.fromkeys(answer[1] for answer in ANSWERS), ids=lambda screen: screen.__name__
)
def test_questions_are_answered_without_a_key(screen, toy_profiles, alive):
    async def script(pilot):
        text = shown(pilot).splitlines()
        for question, asked, phrase, lines in ANSWERS:
            if asked is screen:
                # A long line goes on in the next one.
                told = " ".join(" ".join(text[place - 1] for place in lines).split())
                assert phrase in told, "\n".join([question, *text])

    drive(STORE, screen(), script, clock=Clock(NOW))
