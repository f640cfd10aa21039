"""What an export writes, as one text or as bytes."""

from benchctl.report.output import formats


def whole(form, stored):
    exporter = formats.load(form)
    pieces = [*formats.pieces(exporter, stored)]
    return b"".join(pieces) if exporter.binary else "".join(pieces)
