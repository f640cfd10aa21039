"""What the tool of the sound backend prints."""

from benchctl.api import Channel, Role, Tool
from benchctl.testing import Piece, Transcript

OUT, ERR = Channel.STDOUT, Channel.STDERR


def transcript(*pieces: tuple[Channel, bytes], exit_code: int = 0, **more: object) -> Transcript:
    arrived = tuple(Piece(0.1 * number, *piece) for number, piece in enumerate(pieces))
    given = {"backend": "sound", "argv": ("sound",), "tool": Tool("1.0"), **more}
    return Transcript(exit_code=exit_code, pieces=arrived, **given)


TRANSCRIPTS = {
    "whole": transcript(
        (OUT, b"0.0 0.5 1000 bit/s 3 pages\n0.5 1.0 3000 bit/s 4 p"),
        (ERR, b"a remark\n"),
        (OUT, b"ages\nin all 2000 bit/s\n"),
    ),
    "refused": transcript((ERR, b"sound: connection refused\n"), exit_code=1),
    "server": transcript((OUT, b"listening\n"), role=Role.SERVER),
}
