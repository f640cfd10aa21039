"""What differs between two runs beside their figures, and limits for automatic checks."""

import pytest
from msgspec.structs import replace
from report.sample_report import RUN

from benchctl.analysis.runs.compare import Comparison, Verdict
from benchctl.errors import UsageError
from benchctl.report.comparison.differences import differences
from benchctl.report.comparison.limits import parse_limit

FACTS = {
    "kernel": "6.1", "load_1min": 0.1, "tools": {"iperf3": "3.12"},
    "clock": {"synchronized": True, "max_error_s": 0.1}, "interfaces": {"veth1": {"mtu": 1500}},
}  # fmt: skip


def test_runs_of_one_profile_on_one_machine_do_not_differ():
    later = replace(RUN, facts={**FACTS, "load_1min": 3.0, "interfaces": {}})
    assert differences(replace(RUN, facts=FACTS), later).rows == ()


def test_profile_settings_tools_and_hosts_that_differ_are_named():
    a = replace(RUN, facts=FACTS, profile_text='# head\nstreams = 1\nduration = "5s"')
    b = replace(
        a,
        profile="other",
        profile_text='# tail\nstreams = 1\nduration = "9s"\n# --set duration=9s',
        settings=replace(a.settings, attempts=7),
        trials=a.trials + 1,
        facts={**FACTS, "kernel": "6.12", "tools": {"iperf3": "3.21"}},
    )
    assert differences(a, b).rows == (
        ("profile", a.profile, "other"),
        ("text of the profile", 'duration = "5s"', "-"),
        ("", "-", 'duration = "9s"'),
        ("", "-", "# --set duration=9s"),
        ("attempts", str(a.settings.attempts), "7"),
        ("trials", str(a.trials), str(b.trials)),
        ("kernel", "6.1", "6.12"),
        ("tools.iperf3", "3.12", "3.21"),
    )


def test_facts_of_remote_hosts_that_differ_are_named_with_the_host():
    a = replace(RUN, facts=FACTS, hosts={"oslo": FACTS, "lima": FACTS})
    b = replace(a, hosts={"oslo": {**FACTS, "kernel": "6.12", "load_1min": 3.0}, "bonn": FACTS})
    assert differences(a, b).rows == (("oslo: kernel", "6.1", "6.12"),)


def test_a_value_that_only_one_run_was_given_is_named():
    b = replace(RUN, profile_text=f"{RUN.profile_text}\n# --set duration=9s")
    assert differences(RUN, b).rows == (("text of the profile", "-", "# --set duration=9s"),)


def test_an_axis_that_only_one_run_has_is_named_with_its_values():
    b = replace(RUN, settings=replace(RUN.settings, values={"window": ("1M", "2M")}))
    assert ("axis window", "-", "1M, 2M") in differences(RUN, b).rows
    assert ("axis streams", "1, 2", "-") in differences(RUN, b).rows


def test_profiles_with_little_in_common_are_counted():
    a = replace(RUN, profile_text="\n".join(f"a{n} = 1" for n in range(9)))
    b = replace(RUN, profile_text="b = 1")
    assert differences(a, b).rows == (("text of the profile", "9 lines", "1 other lines"),)


def compared(metric, a, b, verdict):
    return Comparison({}, "main", "send", metric, (a,), (b,), b - a, None, None, verdict)


@pytest.mark.parametrize(
    ("limit", "one", "broken"),
    [
        ("throughput_bps worse by 5%", compared("throughput_bps", 100, 94, Verdict.WORSE), True),
        ("throughput_bps worse by 5%", compared("throughput_bps", 100, 96, Verdict.WORSE), False),
        ("throughput_bps worse by 5%", compared("throughput_bps", 100, 90, Verdict.SAME), False),
        ("throughput_bps worse by 5%", compared("throughput_bps", 100, 9, Verdict.APART), False),
        ("throughput_bps worse by 5%", compared("throughput_bps", 100, 9, Verdict.VARYING), False),
        ("throughput_bps better by 5%", compared("throughput_bps", 100, 90, Verdict.WORSE), False),
        ("loss_ratio worse by 1%", compared("loss_ratio", 0.0, 0.02, Verdict.WORSE), True),
        ("loss_ratio worse by 1%", compared("loss_ratio", 0.001, 0.002, Verdict.WORSE), False),
        ("retransmits worse by 5%", compared("retransmits", 0, 7, Verdict.WORSE), True),
    ],
)
def test_a_limit_is_broken_by_a_change_with_a_verdict_that_is_as_large(limit, one, broken):
    assert parse_limit(limit, {one.metric}).broken_by(one) == broken


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("throughput_bps worse", "expected METRIC worse by SHARE"),
        ("throughput_bps worse than 5%", "expected METRIC worse by SHARE"),
        ("throughput_bps worse by 5", "no unit"),
        ("throughputbps worse by 5%", 'no metric "throughputbps" was compared'),
    ],
)
def test_a_limit_that_cannot_be_read_is_rejected(text, message):
    with pytest.raises(UsageError, match=message):
        parse_limit(text, {"throughput_bps"})
