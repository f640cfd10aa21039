"""A backend whose server listens on two ports: one for the data, one for the answer to them."""

import sys

from benchctl.api import (
    Backend,
    Capabilities,
    Command,
    Direction,
    Failure,
    FailureKind,
    LineParser,
    Parameters,
    Ready,
    Sample,
    Tool,
)

SERVER = """
import socket, sys
places = [(sys.argv[1], int(port)) for port in sys.argv[2:]]
try:
    data, answers = map(socket.create_server, places)
except OSError as error:
    sys.exit(f"busy: {error}")
print("ready", flush=True)
while True:
    with data.accept()[0] as sender:
        size = len(sender.recv(1000, socket.MSG_WAITALL))
    with answers.accept()[0] as reader:
        reader.sendall(b"%d" % size)
"""
CLIENT = """
import socket, sys
data, answers = ((sys.argv[1], int(port)) for port in sys.argv[2:])
with socket.create_connection(data) as sender:
    sender.sendall(bytes(1000))
with socket.create_connection(answers) as reader:
    print("received", reader.recv(100).decode())
"""


class Said(LineParser):
    def line(self, text, channel):
        word, _, rest = text.partition(" ")
        if word == "ready":
            yield Ready()
        elif word == "received":
            yield Sample(0.0, 1.0, {"throughput_bps": float(rest) * 8})
        elif word == "busy:":
            yield Failure(FailureKind.BUSY, rest)


class TwoPorts(Backend):
    name = "two_ports"
    summary = "throughput, counted by the server on a port of its own"
    parameters = Parameters
    capabilities = Capabilities(
        (Direction.SEND,), default_port=7107, needs_server=True, second_port=True
    )

    def probe(self, role):
        return None

    def read_probe(self, role, exit_code, output):
        return Tool("")

    def _command(self, script, flow):
        ports = (str(flow.port), str(flow.second_port))
        return Command((sys.executable, "-c", script, flow.address, *ports), Said(), stays=True)

    def client(self, flow):
        return self._command(CLIENT, flow)

    def server(self, flow):
        return self._command(SERVER, flow)

    def duration_s(self, params):
        return 0.1


BACKEND = TwoPorts()
