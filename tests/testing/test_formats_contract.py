"""The rules of exporters and importers find what breaks them, and nothing in the documents' own."""

import importlib.util
import sys

import pytest
from docs.documents import write_files

from benchctl.api import Exporter, ExportError, Importer, ParserError, Recording, Sample
from benchctl.testing import (
    EXPORTER_RULES,
    IMPORTER_RULES,
    Standing,
    check_exporter,
    check_importer,
)
from benchctl.testing.importing import ImporterSubject
from benchctl.testing.sample_runs import sample_runs


@pytest.fixture(scope="module")
def columns(tmp_path_factory):
    """The module of the documents' example."""
    folder = tmp_path_factory.mktemp("columns")
    write_files("plugins.md", folder)
    spec = importlib.util.spec_from_file_location("columns", folder / "columns.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["columns"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["columns"]


def failed(findings):
    return {one.rule: one.faults for one in findings if one.standing is not Standing.OK}


def test_the_documents_exporter_and_importer_keep_every_rule(columns):
    assert failed(check_exporter(columns.EXPORTER)) == {}
    (run, *_) = sample_runs(single_trial=False)
    files = {"run.dat": "".join(columns.EXPORTER.export(run)).encode()}
    assert failed(check_importer(columns.IMPORTER, files)) == {}


def test_a_directory_of_samples_is_read(columns, tmp_path):
    (run, *_) = sample_runs(single_trial=False)
    (tmp_path / "run.dat").write_text("".join(columns.EXPORTER.export(run)))
    assert failed(check_importer(columns.IMPORTER, tmp_path)) == {}


class Memo(Exporter):
    name, about, endings = "memo", "the name of the run", ("memo",)
    count = 0

    def export(self, run):
        yield run.document["run"]["id"]


class Wrong(Memo):
    def __init__(self, does=None, **attributes):
        vars(self).update(attributes)
        self.does = does

    def export(self, run):
        return self.does(self, run) if self.does else super().export(run)


def counted(exporter, run):
    exporter.count += 1
    yield str(exporter.count)


def kept(exporter, run):
    return [str(row) for row in [*run.samples()]]


def refused(message):
    def refuse(exporter, run):
        raise ExportError(message)

    return refuse


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("declared", Wrong(name="Two words")),
        ("declared", Wrong(about="")),
        ("declared", Wrong(about="two\nlines")),
        ("declared", Wrong(endings=(".memo",))),
        ("declared", Wrong(endings=("MEMO",))),
        ("written", Wrong(lambda *_: 1 / 0)),
        ("written", Wrong(lambda *_: [b"bytes"])),
        ("written", Wrong(lambda *_: ["text"], binary=True)),
        ("written", Wrong(lambda *_: ["\ud800"])),
        ("written", Wrong(lambda _, run: [run.document["trials"][0]["error"]])),
        ("written", Wrong(refused("never"))),
        ("written", Wrong(refused(""))),
        ("equal", Wrong(counted)),
        ("streams", Wrong(kept)),
    ],
)
def test_what_breaks_a_rule_of_exporters_is_found(rule, wrong):
    finding = EXPORTER_RULES[rule].finding(wrong)
    assert finding.standing is Standing.FAILED
    assert all(fault.what and fault.remedy for fault in finding.faults)


@pytest.mark.parametrize("rule", [rule for rule in EXPORTER_RULES if rule != "imports"])
def test_a_sound_exporter_keeps_each_rule(rule):
    assert EXPORTER_RULES[rule].finding(Memo()).faults == ()


def test_an_exporter_that_imports_more_than_the_contract_is_found():
    (first, *_) = EXPORTER_RULES["imports"].finding(Memo()).faults  # of this file
    assert "importing it loads benchctl.testing" in first.what


HEAD = b"memo 1\n"


class Reader(Importer):
    name, about = "memo", "notes of a time"

    def recorded(self, data):
        if not data.startswith(HEAD):
            return None
        try:
            return [{"main": Recording([Sample(0.0, 1.0, {"rtt_s": float(data[len(HEAD) :])})])}]
        except ValueError as error:
            raise ParserError(str(error)) from None


class WrongReader(Reader):
    calls = 0

    def __init__(self, does=None, **attributes):
        vars(self).update(attributes)
        self.does = does

    def recorded(self, data):
        return self.does(self, data) if self.does else super().recorded(data)


def changing(reader, data):
    reader.calls += 1
    return trials(rtt_s=float(reader.calls)) if data.startswith(HEAD) else None


def trials(start_s=0.0, **metrics):
    return [{"main": Recording([Sample(start_s, 1.0, metrics)])}]


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("declared", WrongReader(about="")),
        ("declared", WrongReader(headline="luck")),
        ("read", WrongReader(lambda *_: None)),
        ("read", WrongReader(lambda *_: [])),
        ("read", WrongReader(lambda *_: [{"main": 7}])),
        ("read", WrongReader(lambda *_: trials(luck=1.0))),
        ("read", WrongReader(lambda *_: trials(rtt_s=float("nan")))),
        ("read", WrongReader(lambda *_: trials(2.0, rtt_s=1.0))),
        ("read", WrongReader(changing)),
        ("others", WrongReader(lambda *_: trials(rtt_s=1.0))),
        ("others", WrongReader(lambda _, data: [] if data.decode() else None)),
        ("damaged", WrongReader(lambda _, data: [{"main": float(data.split()[-1])}])),
    ],
)
def test_what_breaks_a_rule_of_importers_is_found(rule, wrong):
    finding = IMPORTER_RULES[rule].finding(ImporterSubject(wrong, {"one": HEAD + b"0.25"}))
    assert finding.standing is Standing.FAILED
    assert all(fault.what and fault.remedy for fault in finding.faults)


@pytest.mark.parametrize("rule", [rule for rule in IMPORTER_RULES if rule != "imports"])
def test_a_sound_importer_keeps_each_rule(rule):
    finding = IMPORTER_RULES[rule].finding(ImporterSubject(Reader(), {"one": HEAD + b"0.25"}))
    assert finding.faults == ()


def test_without_a_file_of_its_kind_two_rules_are_not_checked():
    found = [rule.finding(ImporterSubject(Reader())) for rule in IMPORTER_RULES.values()]
    assert {one.rule for one in found if one.standing is Standing.NOT_CHECKED} == {
        "read",
        "damaged",
    }
