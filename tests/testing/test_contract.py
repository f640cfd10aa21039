"""Each rule of the contract: a backend that keeps it passes, and one that breaks it is told how."""

import itertools
import math
import re
import subprocess
import sys
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Annotated
from unittest import SkipTest

import pytest
from pydantic import ConfigDict
from testing.sound import BACKEND, ClientParser, ServerParser, Sound, SoundParameters
from testing.sound_transcripts import OUT, TRANSCRIPTS

from benchctl.api import (
    Command,
    Direction,
    Duration,
    Effective,
    Failure,
    FailureKind,
    Field,
    Fold,
    LineParser,
    Metric,
    Parameters,
    Probe,
    Ready,
    Sample,
    Summary,
)
from benchctl.testing import RULES, BackendContract, Standing
from benchctl.testing.contract import subject_of
from benchctl.testing.rules import bounded, ending, rule
from benchctl.testing.rules.subject import Subject
from benchctl.testing.transcript import events_text

WRONG = Path(__file__).with_name("wrong")
HOSTNAME = Path("/etc/hostname")


class TestSound(BackendContract):
    backend = BACKEND
    transcripts = TRANSCRIPTS


def wrong(**attributes):
    """Return the sound backend with something else in it."""
    return type("Wrong", (Sound,), attributes)()


def faults(name, backend=BACKEND, transcripts=TRANSCRIPTS):
    """Return what a rule says of a backend, one text for each fault."""
    finding = RULES[name].finding(subject_of(backend, transcripts))
    assert finding.standing is Standing.FAILED, finding
    assert all(fault.remedy for fault in finding.faults)
    return [fault.what for fault in finding.faults]


def parsing(**methods):
    """Return a backend whose client's parser has other methods."""
    parser = type("WrongParser", (ClientParser,), methods)
    return wrong(client_parser=parser)


def in_file(name):
    """Return the backend of a file, loaded as a plugin's is."""
    home = f"benchctl_plugin_{name}"
    spec = spec_from_file_location(home, WRONG / f"{name}.py")
    module = sys.modules[home] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.BACKEND


# --- importing, commands, probes: in a process of their own ----------------------------------


@pytest.fixture(scope="module")
def moody():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCHCTL_MOOD", "fine")
        yield subject_of(in_file("moody"), TRANSCRIPTS)


def test_an_import_that_prints_runs_and_loads_is_told_what():
    printed, ran, thread, inner, screens = faults("imports", in_file("chatty"), {})
    assert "prints 'hello from chatty" in printed
    assert "subprocess.Popen '/bin/true'" in ran
    assert "thread chat" in thread
    assert "loads benchctl." in inner
    assert "loads rich" in screens


def test_commands_that_depend_on_more_than_the_flow_are_told_on_what(moody):
    told = [fault.what for fault in RULES["commands"].finding(moody).faults]
    if HOSTNAME.exists():
        assert "does what only benchctl does: open '/etc/hostname'" in told.pop(0)
    of_environment, of_calls, no_signal, of_order = told
    assert "client().argv" in of_environment
    assert "'fine') and in another process" in of_environment
    assert "client().stop_signal is 'SIG0' and in another call 'SIG1'" in of_calls
    assert "client().stop_signal is 'SIG0'" in no_signal
    assert "client().env is {'WORDS': " in of_order


def test_probes_that_fail_without_their_program_are_told_how(moody):
    failed, client, taken, server, raised = [
        fault.what for fault in RULES["probes"].finding(moody).faults
    ]
    assert "looking for the server's program without a PATH fails" in failed
    assert "probe(client) has argv ('no-such-program', '-c', 'echo 1') and install ''" in client
    assert "takes 'sh: 1: not-the-tool" in taken
    assert "probe(server)" in server
    assert "read_probe() raises KeyError" in raised


# --- parameters ------------------------------------------------------------------------------


def even(value):
    if value % 2:
        raise ValueError("odd")
    return value


class WrongParameters(Parameters):
    speed: float = Field(1.0, description="how fast it is")
    timeout: int = Field(3, description="how long it waits")
    way: Annotated[str, Field(json_schema_extra={"enum": ["there"]}, pattern="back")] = Field(
        "back", description="which way"
    )
    delay: Duration = Field(5, description="how late it is", ge=0)
    pages: int = Field(2, description="pages")


class LooseParameters(SoundParameters):
    model_config = ConfigDict(strict=False, extra="ignore")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (WrongParameters, ["pages is described by 'pages'", "speed is a number without a unit",
                           "timeout is an integer, and a quantity by its name",
                           "the schema offers way = 'there', but: "]),
        (LooseParameters, ["the model has extra=ignore", "the model has strict=False"]),
    ],
)  # fmt: skip
def test_parameters_without_unit_words_or_a_true_schema_are_named(model, words):
    told = faults("parameters", wrong(parameters=model))
    for one, wanted in zip(told, words, strict=True):
        assert wanted in one


# --- parsers ---------------------------------------------------------------------------------


def whole_pieces(self, data, channel=OUT):
    return [event for line in data.decode().splitlines() for event in self.line(line, channel)]


def all_remembered(self, text, channel):
    self.__dict__.setdefault("texts", []).append(text)
    return ()


def tool_believed(self, text, channel):
    if row := text.split():
        return [Sample(float(row[0]), float(row[1]), {"throughput_bps": float(row[2])})]
    return ()


def looked_up(self, text, channel):
    for number in re.findall(r"\d+", text):
        bytearray(int(number[:8]))
    return ()


def backtracked(self, text, channel):
    re.fullmatch(r"(\w+\s?)+", text)
    return ()


def metric_of_its_own(self, text, channel):
    return [Sample(0.0, 1.0, {"guesses": 1.0})]


def not_a_number(self, text, channel):
    return [Summary({"throughput_bps": math.nan})]


def both_ways(self, text, channel):
    return [Sample(0.0, 1.0, {"pages": 1.0}, direction=Direction.BOTH)]


def strange_statistic(self, text, channel):
    return [Summary({"rtt_s": {"p42": 1.0}})]


def again_from_zero(self, text, channel):
    return [Sample(0.0, 1.0, {"throughput_bps": 1.0})]


def backwards(self, text, channel):
    return [Sample(1.0, 0.5, {"pages": 1.0})]


def silent_failure(self, text, channel):
    return [Failure(FailureKind.TOOL, "")]


def strange_settings(self, text, channel):
    return [Effective({"window_bytes": {1}})]


def number_of_text(self, text, channel):
    return [Sample(0.0, 1.0, {"pages": text})]


def more_than_sent(self, text, channel):
    return [Summary({"packets_sent": 739.0, "packets_received": 834.0})]


def word_on_nothing(self, text, channel):
    return [Summary({"packets_sent": 739.0}, instead={"rtt_s": 1.0})]


@pytest.mark.parametrize(
    ("name", "methods", "words"),
    [
        ("cuts", {"feed": whole_pieces}, "refused, byte by byte: event 0 is Failure"),
        ("garbage", {"line": tool_believed}, "ValueError: could not convert string to float"),
        ("garbage", {"line": looked_up}, "WrongParser takes 95 MiB"),
        ("garbage", {"line": all_remembered, "max_line": 1 << 30}, "of a line without an end"),
        ("garbage", {"line": all_remembered}, "KiB like b'"),
        ("time", {"line": backwards}, "whole: a sample from 1.0 to 0.5 s"),
        ("time", {"line": again_from_zero}, "has a sample from 0.0 s after one until 1.0 s"),
        ("metrics", {"line": metric_of_its_own}, "metrics that are not declared: guesses"),
        ("metrics", {"line": not_a_number}, "throughput_bps is nan"),
        ("metrics", {"line": both_ways}, "a sample of direction"),
        ("metrics", {"line": strange_statistic}, "rtt_s with p42"),
        ("metrics", {"line": silent_failure}, "a failure without a message"),
        ("metrics", {"line": strange_settings}, "settings that are no JSON"),
        ("metrics", {"line": word_on_nothing}, "a word on rtt_s, which it does not report"),
        ("laws", {"line": more_than_sent}, "cannot be: received 834 of 739 sent"),
        ("metrics", {"line": number_of_text}, "pages is '0.0 0.5"),
    ],
)
def test_a_parser_that_breaks_a_rule_is_named_with_what_it_did(name, methods, words, monkeypatch):
    monkeypatch.setattr(bounded, "_DAMAGED", 30)
    told = faults(name, parsing(**methods))
    assert any(words in one for one in told), told


def test_a_pattern_that_backtracks_is_given_up(monkeypatch):
    monkeypatch.setattr(bounded, "CPU_S", 0.2)
    monkeypatch.setattr(rule, "MOST_FAULTS", 1)
    (told,) = faults("garbage", parsing(line=backtracked))
    assert "takes more than 0.2 s of CPU time" in told


def test_events_that_are_not_those_expected_are_told():
    text = TRANSCRIPTS["whole"]
    expected = events_text(text.replay(text.parser(BACKEND))).replace("3000.0", "3001.0")
    subject = Subject(BACKEND, {"whole": text}, {"whole": expected})
    (fault,) = RULES["cuts"].finding(subject).faults
    assert "whole: event 1 is" in fault.what
    assert "3000.0" in fault.what


@pytest.mark.parametrize(
    ("capabilities", "words"),
    [
        ({"headline": "guesses"}, "the headline guesses is no metric"),
        ({"directions": ()}, "it has no direction"),
        ({"metrics": (Metric("rtt_s", "again", Fold.VALUE),)}, "rtt_s is declared anew"),
        ({"metrics": (Metric("pages", "", Fold.VALUE),)}, "pages has no description"),
        ({"metrics": (Metric("share_ratio", "x", Fold.VALUE, per=("a", "pages")),)},
         "share_ratio is per a, which is no metric"),
        ({"metrics": (Metric("page_rate", "x", Fold.RATE),)}, "page_rate is a rate without a unit"),
    ],
)  # fmt: skip
def test_capabilities_that_contradict_themselves_are_told(capabilities, words):
    changed = wrong(capabilities=replace(Sound.capabilities, **capabilities))
    assert any(words in one for one in faults("metrics", changed))


# --- processes -------------------------------------------------------------------------------


def test_a_process_that_leaves_its_group_is_found_and_ended(monkeypatch):
    # On a busy machine others that were killed may be there still, and be named too.
    monkeypatch.setattr(ending, "_GONE_S", 0.05)
    monkeypatch.setattr(rule, "MOST_FAULTS", 100)
    # It speaks when it has left.
    script = "setsid sh -c 'echo 0.0 0.5 1 bit/s 1 pages; exec sleep 987' & exec sleep 60"

    def client(self, flow):
        return Command(("/bin/sh", "-c", script), ClientParser())

    told = faults("ends", wrong(client=client))
    assert any("sleep 987 stays as process" in one for one in told)


def test_a_server_that_never_says_that_it_listens_is_told(monkeypatch):
    monkeypatch.setattr(ending, "_READY_S", 0.05)

    def server(self, flow):
        return Command(("/bin/sleep", "60"), ClientParser(), stop_signal="SIGTERM")

    told = faults("ends", wrong(server=server))
    assert "/bin/sleep was not ready within" in told[0]


def server_that_says(kind, ready_at):
    """Return a backend whose server ends with a failure, but listens from one start on."""
    starts = itertools.count(1)

    class Says(LineParser):
        def line(self, text, channel):
            listens = text == "ready"
            yield Ready() if listens else Failure(kind, "Address already in use")

    def server(self, flow):
        script = "echo ready; exec sleep 60" if next(starts) >= ready_at else "echo no; exit 1"
        return Command(("/bin/sh", "-c", script), Says(), stop_signal="SIGTERM")

    return wrong(server=server)


def test_a_server_whose_port_was_just_taken_is_started_again():
    subject = subject_of(server_that_says(FailureKind.BUSY, ready_at=2), TRANSCRIPTS)
    finding = RULES["ends"].finding(subject)
    assert finding.standing is Standing.OK, finding


def test_a_server_that_ends_is_told_with_its_reason_and_not_waited_for():
    [told, *_] = faults("ends", server_that_says(FailureKind.TOOL, ready_at=math.inf))
    assert "ended before it was ready: Address already in use" in told


# --- flows -----------------------------------------------------------------------------------


def speaking(client="", server="echo listening; exec sleep 60"):
    """Return a backend whose tools are other scripts."""

    def command(script, parser):
        return lambda self, flow: Command(
            ("/bin/sh", "-c", script), parser(), stop_signal="SIGTERM", stays=True
        )

    return wrong(
        client=command(client or "echo in all 7 bit/s", ClientParser),
        server=command(server, ServerParser),
    )


@pytest.mark.parametrize(
    ("backend", "told"),
    [
        (speaking(client="exit 0"), "no result"),
        (speaking(client="echo in all 0 bit/s"), "moved no data"),
        (speaking(client="echo what?"), "not a line of sound: 'what?'"),
        (speaking(server="exit 3"), "its server was not ready"),
    ],
)
def test_a_flow_that_measures_nothing_is_a_fault_in_each_direction(backend, told):
    said = faults("flows", backend)
    assert [text.partition(": ")[0] for text in said] == ["send", "receive"]
    assert all(told in text for text in said)


def test_a_tool_that_is_silent_until_its_end_measures():
    finding = RULES["flows"].finding(subject_of(speaking()))
    assert (finding.standing, finding.seen) == (Standing.OK, "measured send, receive")


def test_a_backend_that_starts_no_server_here_needs_a_peer():
    finding = RULES["flows"].finding(subject_of(wrong(server=lambda self, flow: None)))
    assert (finding.standing, finding.seen.partition(":")[0]) == (
        Standing.NOT_CHECKED, "needs a peer",
    )  # fmt: skip


# --- the report ------------------------------------------------------------------------------


def test_what_is_missing_is_not_checked_and_said():
    def probe(self, role):
        return Probe(("no-such-tool",), "apt install no-such-tool")

    subject = subject_of(wrong(probe=probe))
    for name in ("cuts", "time", "metrics", "ends"):
        finding = RULES[name].finding(subject)
        assert finding.standing is Standing.NOT_CHECKED
        record = "needs transcripts: benchctl backends record"
        assert finding.seen.startswith("needs no-such-tool: apt" if name == "ends" else record)


def test_a_rule_that_is_not_checked_skips_its_test():
    class Alone(BackendContract):
        backend = wrong(probe=lambda self, role: Probe(("no-such-tool",), "nowhere"))

    with pytest.raises(SkipTest, match="needs no-such-tool: nowhere"):
        Alone().test_no_process_stays()


def test_a_rule_that_is_broken_fails_its_test_with_what_to_do():
    class Broken(BackendContract):
        backend = parsing(line=backwards)
        transcripts = TRANSCRIPTS

    with pytest.raises(AssertionError) as told:
        Broken().test_time_never_runs_backwards()
    assert "time: no sample ends before it begins" in str(told.value)
    assert "what to do: end_s is not before start_s" in str(told.value)


def test_the_kit_imports_no_test_runner_and_nothing_else_of_benchctl():
    program = (
        "import sys, benchctl.api; before = {*sys.modules}; from benchctl.testing import *\n"
        "new = {name.removeprefix('benchctl.testing') for name in {*sys.modules} - before}\n"
        "print([name for name in new if name.startswith('benchctl.')])\n"
        "print({'pytest', 'hypothesis'} & new)"
    )
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nset()\n"
