"""docs/packets.md: what it shows is what is printed, and it explains every key."""

import json

from docs.documents import blocks_of, text_of
from packets.slow import slow

DOCUMENT = "packets.md"


def test_what_is_shown_is_what_is_printed(tmp_path, shell_in):
    (tmp_path / "slow.pcap").write_bytes(slow())
    shell = shell_in(tmp_path)
    for block in blocks_of(DOCUMENT, "console"):
        shell.check(block)


def test_every_key_of_the_json_is_explained(tmp_path, shell_in):
    (tmp_path / "slow.pcap").write_bytes(slow())
    ((printed, _),) = shell_in(tmp_path).run(["benchctl packets --json slow.pcap"])
    told = text_of(DOCUMENT).partition("## JSON")[2]

    def keys(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                yield from keys(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from keys(inner)

    for line in printed.splitlines():
        for key in keys(json.loads(line)):
            assert f"`{key}`" in told, key
