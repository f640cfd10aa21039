"""iperf3 keeps the contract: every transcript with the flow that its command is for."""

import re
from dataclasses import replace
from itertools import pairwise

from contract import BundledContract, kept, recorded
from iperf3.iperf3_support import SAMPLES, tool

from benchctl.api import Direction, Role
from benchctl_iperf3 import BACKEND

NAMES = sorted(
    str(path.relative_to(SAMPLES).with_suffix("")) for path in SAMPLES.glob("*/*.out")
    if not path.stem.startswith("version")
)  # fmt: skip
SERVERS = (".server", "fail_server_bind_nonlocal_text", "fail_server_port_in_use_text")


def of(name):
    role = Role.SERVER if name.endswith(SERVERS) else Role.CLIENT
    # What the two ends measure is in the command of the client.
    asked = SAMPLES / f"{name.removesuffix('.server')}.client.cmd"
    words = (asked if asked.exists() else SAMPLES / f"{name}.cmd").read_text().split()
    given = {flag: value for flag, value in pairwise(words) if flag[0] == "-"}
    parameters = {"protocol": "udp"} if "-u" in words else {}
    if "-O" in given:
        parameters["omit"] = f"{given['-O']}s"
    if re.fullmatch(r"\d{1,2}", given.get("-P", "")):
        parameters["streams"] = int(given["-P"])
    ways = {"--bidir": Direction.BOTH, "-R": Direction.RECEIVE}
    way = next((way for flag, way in ways.items() if flag in words), Direction.SEND)
    version = tool(name.partition("/")[0])
    if "--json-stream" not in words:
        version = replace(version, features=version.features - {"json-stream"})
    return recorded(SAMPLES / name, role=role, tool=version, direction=way, **parameters)


TRANSCRIPTS = {**kept("iperf3"), **{name: of(name) for name in NAMES}}


class TestIperf3(BundledContract):
    backend = BACKEND
    transcripts = TRANSCRIPTS
