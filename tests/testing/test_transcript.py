import json
from dataclasses import fields
from pathlib import Path

import pytest
from docs.documents import names_in, section, table
from engine.fakes import FakeBackend, FakeParser
from hypothesis import given
from hypothesis import strategies as st

from benchctl.api import (
    Channel,
    Direction,
    Effective,
    Failure,
    FailureKind,
    Parser,
    Ready,
    Role,
    Sample,
    Started,
    Summary,
    Tool,
    Warn,
)
from benchctl.testing.transcript import (
    Piece,
    Stop,
    Transcript,
    default_directory,
    events_text,
    expected_path,
    path_of,
    transcripts_in,
)

TOLD = Transcript(
    backend="fake",
    direction=Direction.RECEIVE,
    parameters={"duration": "5s"},
    tool=Tool("1.0", frozenset({"late", "early"})),
    port=7007,
    argv=("client", "x"),
    exit_code=-2,
    lasted_s=1.5,
    stop=Stop(1.25, "SIGINT", "user"),
    pieces=(
        Piece(0.5, Channel.STDOUT, b"sample 0 1 8\nsam"),
        Piece(1.0, Channel.STDERR, b"\xff\x00"),
        Piece(1.25, Channel.STDOUT, "ple 1 2 9\r\nwarn µ\n".encode()),
    ),
)

WRITTEN = """\
{
  "format": 1,
  "backend": "fake",
  "role": "client",
  "direction": "receive",
  "parameters": {
    "duration": "5s"
  },
  "tool": {
    "version": "1.0",
    "features": [
      "early",
      "late"
    ]
  },
  "address": "127.0.0.1",
  "port": 7007,
  "second_port": null,
  "owns_server": false,
  "argv": [
    "client",
    "x"
  ],
  "exit_code": -2,
  "lasted_s": 1.5,
  "stop": {
    "at_s": 1.25,
    "signal": "SIGINT",
    "by": "user"
  },
  "pieces": [
    {
      "at_s": 0.5,
      "channel": "stdout",
      "data": [
        "sample 0 1 8\\n",
        "sam"
      ]
    },
    {
      "at_s": 1.0,
      "channel": "stderr",
      "data": {
        "base64": [
          "/wA="
        ]
      }
    },
    {
      "at_s": 1.25,
      "channel": "stdout",
      "data": [
        "ple 1 2 9\\r\\n",
        "warn µ\\n"
      ]
    }
  ]
}
"""


def test_a_file_is_read_by_people_line_by_line(tmp_path):
    path = tmp_path / "x.client.json"
    TOLD.save(path)
    assert path.read_text(encoding="utf-8") == WRITTEN
    assert Transcript.load(path) == TOLD


@given(
    pieces=st.lists(
        st.builds(
            Piece,
            st.floats(0, 1e6),
            st.sampled_from(Channel),
            st.binary(max_size=200) | st.text().map(str.encode),
        ),
        max_size=4,
    ),
    exit_code=st.integers(-64, 255),
    argv=st.lists(st.text(), min_size=1),
    parameters=st.dictionaries(st.text(), st.text() | st.integers(-9, 9) | st.booleans()),
)
def test_whatever_was_recorded_is_read_again(tmp_path_factory, **fields):
    told = Transcript(
        backend="x",
        argv=tuple(fields.pop("argv")),
        pieces=tuple(fields.pop("pieces")),
        **fields,
    )
    path = tmp_path_factory.getbasetemp() / "written.client.json"
    told.save(path)
    assert Transcript.load(path) == told


WRONG = {
    "empty": ("", "not a transcript: Invalid JSON"),
    "cut": (WRITTEN[:300], "not a transcript: Invalid JSON"),
    "another file": ('{"name": "x"}', "not a transcript: backend: "),
    "newer": (WRITTEN.replace('"format": 1', '"format": 2'), "of format 2, but this benchctl"),
    "key": (WRITTEN.replace('"role"', '"roll"'), "not a transcript: roll: "),
    "role": (WRITTEN.replace('"client",', '"peer",', 1), "not a transcript: role: "),
    "number": (WRITTEN.replace("0.5,", '"0.5",'), "not a transcript: pieces.0.at_s: "),
    "channel": (WRITTEN.replace('"stderr"', '"stdin"'), "not a transcript: pieces.1.channel: "),
    "base64": (WRITTEN.replace("/wA=", "/w!"), "not a transcript: pieces.1.data: "),
    "data": (WRITTEN.replace('"sam"', "7"), "not a transcript: pieces.0.data: "),
    "code": (WRITTEN.replace("-2,", "null,"), "not a transcript: exit_code: "),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_no_transcript_is_refused_in_one_line_with_its_name(name, tmp_path):
    text, reason = WRONG[name]
    path = tmp_path / "odd.client.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"a transcript") as caught:
        Transcript.load(path)
    assert f"{path}: " in str(caught.value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_output_that_is_no_text_is_kept_as_it_is(tmp_path):
    path = tmp_path / "x.client.json"
    piece = Piece(0.0, Channel.STDOUT, bytes(range(256)) + bytes(4096))
    Transcript(backend="x", argv=("x",), exit_code=0, pieces=(piece,)).save(path)
    assert Transcript.load(path).pieces == (piece,)
    assert path.stat().st_size < 2 * len(piece.data)


def test_a_file_written_by_hand_needs_only_what_no_default_can_be(tmp_path):
    path = tmp_path / "hand.client.json"
    least = {"backend": "fake", "argv": ["x"], "exit_code": 1, "pieces": []}
    path.write_text(json.dumps(least))
    told = Transcript.load(path)
    flow = told.flow(FakeBackend())
    assert (flow.direction, flow.port, flow.tool) == (Direction.SEND, 5201, Tool(""))
    assert flow.params.duration == 1.0


class Heard(Parser):
    """Warns of each piece."""

    def feed(self, data, channel=Channel.STDOUT):
        return [Warn(f"{channel} {len(data)}")]

    def close(self, exit_code):
        return [Warn(f"ended with {exit_code}")]


def test_output_is_replayed_as_it_came():
    heard = [event.message for event in TOLD.replay(Heard())]
    assert heard == ["stdout 16", "stderr 2", "stdout 19", "ended with -2"]
    assert [type(event) for event in TOLD.replay(FakeParser())] == [Sample, Sample, Warn]
    assert TOLD.stderr == b"\xff\x00"


def test_the_flow_is_the_one_that_was_recorded():
    flow = TOLD.flow(FakeBackend())
    assert flow.params.duration == 5.0
    assert (flow.direction, flow.port, flow.tool) == (Direction.RECEIVE, 7007, TOLD.tool)
    assert not flow.owns_server
    assert isinstance(TOLD.parser(FakeBackend()), FakeParser)


def test_parameters_that_the_backend_has_no_more_are_named():
    old = Transcript(backend="fake", parameters={"speed": 1}, argv=(), exit_code=0, pieces=())
    with pytest.raises(ValueError, match=r"^fake: speed: ") as caught:
        old.parser(FakeBackend())
    assert "\n" not in str(caught.value)


class Serverless(FakeBackend):
    def server(self, flow):
        return None


def test_the_server_of_a_backend_without_one_has_no_parser():
    told = Transcript(backend="fake", role=Role.SERVER, argv=(), exit_code=0, pieces=())
    with pytest.raises(ValueError, match="fake has no server"):
        told.parser(Serverless())


def test_every_kind_of_event_is_one_line_of_json():
    events = [
        Ready(),
        Started(1.5),
        Sample(0.0, 1.0, {"rtt_s": 0.25}, 2, Direction.ROUND_TRIP),
        Summary({"rtt_s": {"min": 0.5}}, Direction.RECEIVE),
        Effective({"window_bytes": 4}),
        Warn("µ"),
        Failure(FailureKind.PEER, "gone", "come back"),
    ]
    assert [json.loads(line) for line in events_text(events).splitlines()] == [
        {"event": "Ready"},
        {"event": "Started", "epoch_s": 1.5},
        {
            "event": "Sample", "start_s": 0.0, "end_s": 1.0, "metrics": {"rtt_s": 0.25},
            "stream": 2, "direction": "round-trip", "omitted": False,
        },
        {"event": "Summary", "metrics": {"rtt_s": {"min": 0.5}}, "direction": "receive"},
        {"event": "Effective", "settings": {"window_bytes": 4}},
        {"event": "Warn", "message": "µ"},
        {"event": "Failure", "kind": "peer", "message": "gone", "hint": "come back"},
    ]  # fmt: skip


def test_the_text_of_events_does_not_depend_on_the_order_of_a_set():
    one = Effective({"a": 1, "b": ({"c": 2, "d": 3},)})
    other = Effective({"b": ({"d": 3, "c": 2},), "a": 1})
    assert events_text([one]) == events_text([other])


def test_the_transcripts_of_a_directory_are_its_files_of_both_ends_by_name(tmp_path):
    for case, role in (("b", Role.CLIENT), ("a", Role.SERVER), ("a", Role.CLIENT)):
        TOLD.save(path_of(tmp_path, case, role))
    expected_path(path_of(tmp_path, "a", Role.CLIENT)).write_text("")
    (tmp_path / "notes.json").write_text("{}")
    names = [path.name for path in transcripts_in(tmp_path)]
    assert names == ["a.client.json", "a.server.json", "b.client.json"]
    assert expected_path(tmp_path / names[0]).name == "a.client.events.jsonl"


def test_transcripts_are_in_the_tests_if_these_have_a_place_for_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_directory() == Path("transcripts")
    (tmp_path / "tests" / "transcripts").mkdir(parents=True)
    assert default_directory() == Path("tests/transcripts")


def test_the_page_explains_every_key_in_the_order_of_the_file():
    keys = names_in(table(section("plugins.md", "## Record the tool")))
    assert keys == [one.name for one in fields(Transcript)]
