"""Recording, with programs that are scripts and a clock that jumps."""

import pytest
from engine.fakes import FakeBackend, FakeSpawner, Script, run_virtual

from benchctl.api import Channel, Direction, Flow, Role, Tool
from benchctl.testing import recording
from benchctl.testing.recording import Session
from benchctl.testing.transcript import Piece, Stop

TALK = Script([(0.5, "one"), (0.75, "!two"), (1.0, "three")], ends_s=1.5, code=3)
ENDLESS = Script([(0.5, "one")], ends_s=None, says_on_signal="bye")
READY = Script([(0.25, "ready")], ends_s=None, on_signal=-15)


def command_of(script, limit_s=None, ask=None):
    """Record a script as a command; ``ask`` is when the user stops it, and by which signal."""

    async def main(loop):
        session = Session(FakeSpawner({"tool": script}), limit_s)
        if ask:
            at_s, name = ask
            loop.call_later(at_s, session.stop, "user", name)
        return await session.command(("tool", "x"))

    return run_virtual(main)


def flow_of(scripts, *, ask_s=None, backend=None, **parameters):
    """Record both ends of a flow; returns the transcripts by role, and what was done when."""
    backend = backend or FakeBackend()

    async def main(loop):
        spawner = FakeSpawner(scripts)
        session = Session(spawner)
        params = backend.parameters(**parameters)
        flow = Flow(params, Direction.SEND, "127.0.0.1", 5201, Tool("1"), owns_server=True)
        ends = {
            Role.SERVER: (flow, backend.server(flow)),
            Role.CLIENT: (flow, backend.client(flow)),
        }
        if ask_s is not None:
            loop.call_later(ask_s, session.stop, "user")
        told = await session.flow(backend, ends)
        return {one.role: one for one in told}, spawner.log

    return run_virtual(main)


def test_every_piece_has_its_channel_and_the_time_of_its_arrival():
    told = command_of(TALK)
    assert told.pieces == (
        Piece(0.5, Channel.STDOUT, b"one\n"),
        Piece(0.75, Channel.STDERR, b"two\n"),
        Piece(1.0, Channel.STDOUT, b"three\n"),
    )
    assert (told.exit_code, told.lasted_s, told.stop) == (3, 1.5, None)
    assert told.argv == ("tool", "x")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_the_signal_of_the_user_is_passed_on_and_recorded(name):
    told = command_of(ENDLESS, ask=(2.0, name))
    assert told.stop == Stop(2.0, name, "user")
    assert told.exit_code == -2
    assert told.stdout == b"one\nbye\n"


def test_a_command_that_ignores_its_signal_is_killed_as_in_a_run():
    told = command_of(Script([], ends_s=None, on_signal=None), ask=(1.0, "SIGINT"))
    assert (told.exit_code, told.stop.signal, told.lasted_s) == (-9, "SIGINT", 3.0)


@pytest.mark.parametrize(("limit_s", "at_s"), [(None, recording.COMMAND_S), (5.0, 5.0)])
def test_a_command_that_never_ends_is_stopped_after_a_time(limit_s, at_s):
    told = command_of(ENDLESS, limit_s)
    assert told.stop == Stop(at_s, "SIGINT", "time")
    assert told.stdout == b"one\nbye\n"


@pytest.mark.parametrize("most", ["MOST_BYTES", "MOST_PIECES"])
def test_output_without_end_is_bounded_and_what_came_before_is_kept(monkeypatch, most):
    monkeypatch.setattr(recording, most, {"MOST_BYTES": 12, "MOST_PIECES": 3}[most])
    flood = Script([(0.5 + step, "xyz") for step in range(9)], ends_s=None, says_on_signal="bye")
    told = command_of(flood)
    assert told.stop == Stop(3.5, "SIGINT", "size")
    assert told.stdout == b"xyz\n" * 3


def test_the_client_starts_when_the_server_is_ready_and_both_are_recorded():
    told, log = flow_of({"server": READY, "client": TALK})
    assert [*told] == [Role.SERVER, Role.CLIENT]
    begun = {what.split()[0]: at_s for at_s, action, what in log if action == "begin"}
    assert begun == {"server": 0.0, "client": 0.25}
    assert told[Role.CLIENT].pieces[0].at_s == 0.5
    assert told[Role.CLIENT].exit_code == 3
    # As in a run, it has two seconds to end by itself.
    assert told[Role.SERVER].stop == Stop(3.75, "SIGINT", "client")
    assert told[Role.SERVER].exit_code == -15
    assert {(one.port, one.tool, one.owns_server) for one in told.values()} == {
        (5201, Tool("1"), True)
    }


def test_nobody_waits_for_a_server_that_stays():
    told, _ = flow_of({"server": READY, "client": TALK}, label="stays")
    assert told[Role.SERVER].stop.at_s == 1.75


def test_a_one_shot_server_ends_by_itself():
    server = Script([(0.25, "ready"), (1.5, "done")], ends_s=2.0)
    told, _ = flow_of({"server": server, "client": TALK})
    assert (told[Role.SERVER].stop, told[Role.SERVER].exit_code) == (None, 0)


@pytest.mark.parametrize(
    ("server", "code", "stop"),
    [
        (Script([(0.5, "!in use")], ends_s=1.0, code=1), 1, None),
        (Script([(0.5, "hello")], ends_s=None), -2, Stop(10.0, "SIGINT", "time")),
        (Script([(0.5, "crash"), (1.0, "ready")], ends_s=None), -2, Stop(10.0, "SIGINT", "time")),
    ],
)
def test_a_server_that_is_never_ready_is_recorded_without_a_client(server, code, stop):
    told, _ = flow_of({"server": server})
    assert [*told] == [Role.SERVER]
    assert (told[Role.SERVER].exit_code, told[Role.SERVER].stop) == (code, stop)


def test_the_user_stops_both_ends_the_client_first():
    told, log = flow_of({"server": READY, "client": ENDLESS}, ask_s=1.0)
    assert told[Role.CLIENT].stop == Stop(0.75, "SIGINT", "user")
    assert told[Role.SERVER].stop == Stop(3.0, "SIGINT", "user")
    assert [what.split()[0] for _, action, what in log if action == "SIGINT"] == [
        "client", "server",
    ]  # fmt: skip


def test_the_user_need_not_wait_for_a_server():
    told, _ = flow_of({"server": Script([], ends_s=None)}, ask_s=1.0)
    assert told[Role.SERVER].stop == Stop(1.0, "SIGINT", "user")


def test_a_flow_that_hangs_is_stopped_some_time_after_its_duration():
    told, _ = flow_of({"server": READY, "client": ENDLESS}, duration="4s")
    assert told[Role.CLIENT].stop == Stop(4.0 + recording.SLACK_S, "SIGINT", "time")


def test_a_command_line_does_not_say_where_this_machine_has_its_files(tmp_path):
    tool = tmp_path / "tool"
    tool.touch()
    script = Script([])

    async def main(loop):
        session = Session(FakeSpawner({"x": script}))
        return await session.command((str(tool), "x", "/no/such", "tool", "\udcff"))

    assert run_virtual(main).argv == ("…/tool", "x", "/no/such", "tool", "\\xff")
