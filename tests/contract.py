"""The contract of a backend for the bundled ones, and transcripts that are four files each."""

from pathlib import Path

from benchctl.api import Channel, Role, Tool
from benchctl.testing import BackendContract, Piece, Transcript
from benchctl.testing.transcript import transcripts_in

TOOL = Tool("1.0")


class BundledContract(BackendContract):
    """The contract with a port that nothing else takes."""

    def test_a_flow_on_loopback_measures_in_each_direction(self, port):
        self.port = port
        super().test_a_flow_on_loopback_measures_in_each_direction()

    def test_no_process_stays(self, port):
        self.port = port
        super().test_no_process_stays()


def kept(room):
    """Return the transcripts that `benchctl backends record` wrote for a room, by name."""
    found = transcripts_in(Path(__file__).parent / room / "transcripts")
    return {path.name: told for path, told in found.items()}


def recorded(path, **more):
    """Return a transcript kept as PATH.out, PATH.err and PATH.rc; see `said`."""
    kept = {
        channel: path.with_name(f"{path.name}.{suffix}").read_bytes()
        for channel, suffix in ((Channel.STDOUT, "out"), (Channel.STDERR, "err"))
    }
    code = int(path.with_name(f"{path.name}.rc").read_text())
    return said(*kept.items(), exit_code=code, **more)


def said(*pieces, exit_code=0, role=Role.CLIENT, tool=TOOL, direction=None, **parameters):
    """Return a transcript of pieces, each with its channel, and of the flow's parameters."""
    return Transcript(
        backend="", argv=(), exit_code=exit_code, role=role, tool=tool, direction=direction,
        parameters=parameters, pieces=tuple(Piece(0.0, *piece) for piece in pieces if piece[1]),
    )  # fmt: skip
