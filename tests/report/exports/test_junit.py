"""Expectations as JUnit XML: a structure that CI systems read, whatever the texts contain."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from report.sample_report import REPORT, RUN

from benchctl.analysis.runs.outcomes import Answer, Outcome
from benchctl.report.exports.junit import junit

INTEGER, DECIMAL, TEXT = r"\d+", r"\d+(\.\d+)?", r"(?s).+"
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
# As Ant's schema has them (windyroad's JUnit.xsd): attributes and the order of elements. Jenkins'
# junit-10.xsd allows all of it.
ATTRIBUTES = {
    "testsuites": {},
    "testsuite": {
        "name": TEXT, "id": INTEGER, "package": TEXT, "timestamp": MOMENT, "hostname": TEXT,
        "tests": INTEGER, "failures": INTEGER, "errors": INTEGER, "skipped": INTEGER,
        "time": DECIMAL,
    },
    "properties": {},
    "property": {"name": TEXT, "value": r"(?s).*"},
    "testcase": {"name": TEXT, "classname": TEXT, "time": DECIMAL},
    "failure": {"message": r"(?s).*", "type": TEXT},
    "error": {"message": r"(?s).*", "type": TEXT},
    "skipped": {"message": r"(?s).*"},
    "system-out": {},
    "system-err": {},
}  # fmt: skip
CHILDREN = {
    "testsuites": "(testsuite )*",
    "testsuite": "properties (testcase )*system-out system-err ",
    "properties": "(property )*",
    "testcase": "(skipped |error |failure )?",
}


def check(element):
    allowed = ATTRIBUTES[element.tag]
    assert element.attrib.keys() == allowed.keys()
    for name, pattern in allowed.items():
        assert re.fullmatch(pattern, element.attrib[name]), (element.tag, name, element.attrib)
    children = "".join(f"{child.tag} " for child in element)
    assert re.fullmatch(CHILDREN.get(element.tag, ""), children), (element.tag, children)
    for child in element:
        check(child)


def suite(report, **how):
    root = ET.fromstring(junit(report, **how))
    check(root)
    (found,) = root
    assert found.attrib["tests"] == str(len(found.findall("testcase")))
    for counted, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert found.attrib[counted] == str(len(found.findall(f"testcase/{tag}")))
    return found


def results(found):
    return [
        (case.attrib["name"], *(child.tag for child in case)) for case in found.iter("testcase")
    ]


def test_each_expectation_at_each_point_is_a_test_case_and_a_failed_trial_an_error():
    assert results(suite(REPORT)) == [
        ("trial 2 at streams=2, to=paris, repeat 1", "error"),
        ("throughput_bps of bulk at streams=1, send", "failure"),
        ("rtt_s of ping at streams=1, round-trip",),
        ("rtt_s.p95 of ping at streams=1, round-trip", "skipped"),
    ]


def test_strictly_what_is_undecided_is_a_failure():
    assert [tag for _, *tag in results(suite(REPORT, strict=True))] == [
        ["error"], ["failure"], [], ["failure"],
    ]  # fmt: skip


def test_a_failure_has_the_figures():
    (failure,) = suite(REPORT).iter("failure")
    assert (
        failure.attrib["message"]
        == failure.text
        == ("not met: 94.1 Mbit/s ±0.31, at least 95.0 Mbit/s")
    )


def test_a_run_without_expectations_or_before_its_start_is_an_empty_suite():
    planned = replace(RUN, started_time=None, finished_time=None)
    found = suite(replace(REPORT, run=planned, trials=[], outcomes=[]))
    assert (found.attrib["tests"], found.attrib["time"]) == ("0", "0.000")


@pytest.mark.parametrize("answer", list(Answer))
@given(st.text(st.characters(exclude_categories=[]), min_size=1))
def test_any_text_of_a_profile_or_a_tool_stays_well_formed(answer, text):
    outcome = Outcome(text, False, answer, why=text, direction="send")
    report = replace(REPORT, run=replace(RUN, profile=text, title=text), outcomes=[outcome])
    junit(report).encode("utf-8")
    suite(report)
