"""Files that are damaged anywhere: read as far as they make sense, or refused in a line."""

import json
import random

from imports.reports import SAMPLES, report
from imports.test_flent import flent

from benchctl.api import ParserError
from benchctl.imports.kinds import find_kinds
from benchctl.imports.run import checked

WORDS = (b"-1", b"1e308", b"null", b"[]", b"{}", b'"x"', b"NaN", b"9" * 20, b"true", b"\xff")


def damaged(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(3):
            case 0:
                data[at : at + 1] = bytes([rng.choice(b'0123456789"{}[]:,-. \n\tnaultrefs')])
            case 1:
                del data[at : at + rng.randrange(1, 30)]
            case _:
                data[at:at] = rng.choice(WORDS)
    return bytes(data)


def test_random_damage_never_makes_a_reader_fail():
    samples = [path.read_bytes() for path in sorted(SAMPLES.rglob("*.*"))]
    samples += [json.dumps(one).encode() for one in (flent(), report(streams=2))]
    readers = find_kinds().known.values()
    refused = []
    for seed in range(750):
        rng = random.Random(seed)
        data = damaged(rng.choice(samples), rng)
        for kind in readers:
            try:
                for trial in kind.read(data) or ():
                    for one in trial.values():
                        checked(one)
            except ParserError as error:
                refused.append(str(error))
    assert len(refused) > 100
    # What a backend raises by mistake is reported as its failure.
    assert [why for why in refused if "failed:" in why] == []
