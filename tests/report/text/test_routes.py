"""Routes in words: in one line, hop by hop, and how repeats and runs differ."""

from msgspec.structs import replace
from report.sample_report import BEGIN, RUN, flow, trial

from benchctl.analysis.flow.figures import distribution
from benchctl.report.report import Report
from benchctl.report.text.remarks import remarks
from benchctl.report.text.routes import hop_table, is_same, route_differences, route_text
from benchctl.run.record import Figure, TracedHop
from benchctl.run.status import Status

UPPER, LOWER = ("10.0.0.2", "10.0.1.2", "10.0.9.9"), ("10.0.0.2", "10.0.2.2", "10.0.9.9")


def hop(*addresses, unanswered=0.0):
    """Return a hop that answered once by each address."""
    figures = {"hop_probes": 100.0, "hop_unanswered": 100.0 * unanswered}
    return TracedHop(
        dict.fromkeys(addresses, 1), {name: Figure(n, "samples") for name, n in figures.items()}
    )


def route(*hops):
    return tuple(hop(*filter(None, [one])) if one is None or isinstance(one, str) else one
                 for one in hops)  # fmt: skip


def report(*routes, point=None, status=Status.OK):
    """Return a report of repeats of one flow, each with its route."""
    trials = []
    for repeat, one in enumerate(routes, 1):
        traced = flow("trace", status)
        traced = replace(traced, flow=replace(traced.flow, route=route(*one)))
        trials.append(trial(repeat - 1, repeat, point or {}, BEGIN, [traced]))
    return Report(replace(RUN, trials=len(trials)), trials, (), ())


def told(*routes, **how):
    return [line for line in remarks(report(*routes, **how)) if line]


def test_a_route_is_one_line_with_parallel_and_silent_routers():
    text = route_text(route("10.0.0.2", hop("10.0.1.2", "10.0.2.2"), None, "10.0.9.9"))
    assert text == "10.0.0.2 > 10.0.1.2 or 10.0.2.2 > * > 10.0.9.9"


def test_silence_makes_no_route_another_one():
    assert is_same(route(*UPPER), route("10.0.0.2", None, "10.0.9.9"))
    assert is_same(route("10.0.0.2", hop("10.0.1.2", "10.0.2.2"), "10.0.9.9"), route(*LOWER))
    assert not is_same(route(*UPPER), route(*LOWER))
    assert not is_same(route(*UPPER), route(*UPPER[1:]))


def test_repeats_of_one_route_are_one_line():
    assert told(UPPER, ("10.0.0.2", None, "10.0.9.9")) == [
        "route of trace: 10.0.0.2 > 10.0.1.2 > 10.0.9.9"
    ]


def test_a_route_that_changes_between_repeats_is_told_with_them():
    assert told(UPPER, LOWER, UPPER) == [
        "route of trace: changed between repeats: 10.0.0.2 > 10.0.1.2 > 10.0.9.9 (repeats 1, 3);"
        " 10.0.0.2 > 10.0.2.2 > 10.0.9.9 (repeat 2)"
    ]


def test_points_with_other_routes_are_named_and_points_alike_are_not():
    upper, lower = report(UPPER, point={"to": "a"}), report(LOWER, point={"to": "b"})
    both = replace(upper, trials=[*upper.trials, *lower.trials])
    assert [line for line in remarks(both) if line.startswith("route")] == [
        "route of trace at to=a: 10.0.0.2 > 10.0.1.2 > 10.0.9.9",
        "route of trace at to=b: 10.0.0.2 > 10.0.2.2 > 10.0.9.9",
    ]
    alike = report(UPPER, point={"to": "b"})
    both = replace(upper, trials=[*upper.trials, *alike.trials])
    assert [line for line in remarks(both) if line.startswith("route")] == [
        "route of trace: 10.0.0.2 > 10.0.1.2 > 10.0.9.9"
    ]


def test_a_flow_that_did_not_arrive_has_no_route_to_compare():
    assert not any("route" in line for line in told(UPPER[:2], status=Status.FAILED))


def test_routers_that_limit_their_answers_are_told_from_a_loss_of_the_path():
    end = hop("10.0.9.9", unanswered=0.1)
    (_, line) = told((hop("10.0.0.2", unanswered=0.4), hop(unanswered=1.0), end))
    assert line == (
        "hops 1 (10.0.0.2), 2 (silent) of trace left probes unanswered that the path did not lose:"
        " routers limit their answers"
    )
    # What is lost on a link before the hop is lost behind it, too.
    assert len(told((hop("10.0.0.2"), hop("10.0.1.2", unanswered=0.16), end))) == 1


def test_a_route_hop_by_hop_has_the_figures_of_its_probes():
    rtts = {"hop_rtt_s": distribution([0.002, 0.004]), "hop_probes": Figure(3.0, "samples")}
    table = hop_table((TracedHop({"10.0.0.2": 1, "10.0.0.6": 2}, rtts), TracedHop({})))
    assert table.heads == (
        "hop", "address", "hop_rtt min", "median", "p95", "max", "hop_probes",
    )  # fmt: skip
    assert table.rows[0] == (
        "1", "10.0.0.2 (1), 10.0.0.6 (2)", "2.00 ms", "3.00 ms", "3.90 ms", "4.00 ms", "3",
    )  # fmt: skip
    assert table.rows[1] == ("2", "*", *"-----")


def test_runs_with_other_routes_differ_and_runs_with_the_same_do_not():
    assert not [*route_differences(report(UPPER), report(UPPER, ("10.0.0.2", None, "10.0.9.9")))]
    assert [*route_differences(report(UPPER), report(LOWER))] == [
        ("route of trace", "10.0.0.2 > 10.0.1.2 > 10.0.9.9", "10.0.0.2 > 10.0.2.2 > 10.0.9.9")
    ]
    ((name, a, b),) = route_differences(report(UPPER), report(UPPER, LOWER))
    assert (name, a) == ("route of trace", "10.0.0.2 > 10.0.1.2 > 10.0.9.9")
    assert b.startswith("changed between repeats")
