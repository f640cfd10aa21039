from benchctl.api import Channel
from benchctl.testing.account import account, notes
from benchctl.testing.transcript import Piece, Stop, Transcript

OUT, ERR = Channel.STDOUT, Channel.STDERR


def told(*pieces, lasted_s=5.0, stop=None, exit_code=0):
    return Transcript(
        backend="x", argv=("x",), exit_code=exit_code, lasted_s=lasted_s, stop=stop,
        pieces=tuple(Piece(*piece) for piece in pieces),
    )  # fmt: skip


def test_it_says_how_the_command_ended_and_what_arrived_when():
    pieces = (0.5, OUT, b"x" * 1000), (0.75, ERR, b"no"), (4.5, OUT, b"x" * 234)
    assert account(told(*pieces, stop=Stop(4.0, "SIGINT", "user"), exit_code=-2)) == (
        "ended by SIGINT after 5.00 s, SIGINT at 4.00 s\n"
        "  stdout  1,234 bytes in 2 pieces, from 500 ms to 4.50 s\n"
        "  stderr  2 bytes at 750 ms"
    )
    assert account(told(exit_code=3)).startswith("exit code 3 after 5.00 s\n  stdout  nothing\n")


def test_a_tool_that_prints_only_at_its_end_is_told_from_one_that_flushes():
    late = notes(told((4.9, OUT, b"all")), by_default=True)
    assert [note.partition(",")[0] for note in late] == ["all output of the client came at its end"]
    for other in (
        told((0.5, OUT, b"some"), (4.9, OUT, b"rest")),
        told((4.9, ERR, b"all")),
        told((0.1, OUT, b"all"), lasted_s=0.1),
    ):
        assert [*notes(other, by_default=True)] == []


def test_who_set_no_time_is_told_how():
    cut = told(stop=Stop(60.0, "SIGINT", "time"))
    assert [*notes(cut, by_default=False)] == []
    assert [*notes(cut, by_default=True)] == [
        "the client was stopped after 60.0 s; --for DURATION sets the time"
    ]


def test_a_tool_that_ignores_its_signal_is_pointed_out():
    deaf = told(stop=Stop(3.0, "SIGINT", "user"), exit_code=-9)
    assert [*notes(deaf, by_default=True)] == [
        "the client did not end within 2 s of SIGINT, and was killed: choose the stop_signal that"
        " ends it"
    ]
    assert [*notes(told(exit_code=-9), by_default=True)] == []
