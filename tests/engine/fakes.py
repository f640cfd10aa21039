"""A clock that jumps, programs that are scripts, and a backend that understands them."""

import asyncio
import selectors
from dataclasses import dataclass, field

from benchctl.api import (
    Backend,
    Capabilities,
    Channel,
    Command,
    Direction,
    Duration,
    Effective,
    Failure,
    FailureKind,
    Field,
    LineParser,
    Parameters,
    Probe,
    Ready,
    Sample,
    Started,
    Summary,
    Tool,
    Warn,
)
from benchctl.errors import StoreError
from benchctl.hosts.clocks import OURS

EPOCH = 1_000_000.0


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: where nothing is ready, the loop's time moves on to the next timer."""

    loop = None

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everything waits for something that never comes"
            self.loop.now += timeout
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self):
        selector = _JumpingSelector()
        super().__init__(selector)
        selector.loop = self
        self.now = 0.0

    def time(self):
        return self.now


def run_virtual(main):
    """Run ``main(loop)`` to its end in virtual time; nothing may be left to asyncio."""
    complaints, left = [], []

    async def alone(loop):
        try:
            return await main(loop)
        finally:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            left.extend(task for task in others if not task.cancelling())

    try:
        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            loop = runner.get_loop()
            loop.set_exception_handler(lambda _, context: complaints.append(context))
            return runner.run(alone(loop))
    finally:
        assert not complaints
        assert not left


@dataclass
class Script:
    """What a program prints, (seconds after its begin, line), and how it ends.

    ``ends_s`` None: never by itself. ``on_signal``: exit code after a signal, None: ignores all
    but SIGKILL.
    """

    lines: list = field(default_factory=list)
    ends_s: float | None = 0.0
    code: int = 0
    on_signal: int | None = -2
    says_on_signal: str = ""


class FakeProcess:
    arrived = None

    def __init__(self, script, on_data, log, name):
        self.pid = id(self) % 100_000
        self._script, self._on_data, self._log, self._name = script, on_data, log, name
        self._loop = asyncio.get_running_loop()
        self._exit = self._loop.create_future()
        self._timers = []

    def begin(self, at=None):
        self._log.append((self._loop.time(), "begin", self._name))
        for at_s, text in self._script.lines:
            channel = Channel.STDERR if text.startswith("!") else Channel.STDOUT
            data = text.removeprefix("!").encode() + b"\n"
            self._timers.append(self._loop.call_later(at_s, self._on_data, channel, data))
        if self._script.ends_s is not None:
            code = self._script.code
            self._timers.append(self._loop.call_later(self._script.ends_s, self._end, code))

    def _end(self, code):
        for timer in self._timers:
            timer.cancel()
        if not self._exit.done():
            self._exit.set_result(code)

    def send_signal(self, name):
        if self._exit.done():
            return
        self._log.append((self._loop.time(), name, self._name))
        if name == "SIGKILL":
            self._end(-9)
        elif self._script.on_signal is not None:
            if self._script.says_on_signal:
                self._on_data(Channel.STDOUT, self._script.says_on_signal.encode() + b"\n")
            self._end(self._script.on_signal)

    @property
    def has_ended(self):
        return self._exit.done()

    async def wait(self):
        return await asyncio.shield(self._exit)


class FakeSpawner:
    """Starts scripts by the words of the command: the first key all of whose words are there."""

    def __init__(self, scripts, start_s=0.0):
        self.scripts = scripts
        self.start_s = start_s
        self.log = []
        self.started = []
        self.processes = []

    async def start(self, host, argv, env, on_data):
        self.started.append(tuple(argv))
        for words, script in self.scripts.items():
            if set(words.split()) <= set(argv):
                script = script.pop(0) if isinstance(script, list) else script
                if isinstance(script, OSError):
                    raise script
                process = FakeProcess(script, on_data, self.log, " ".join(argv))
                self.processes.append(process)
                try:
                    await asyncio.sleep(self.start_s)
                except asyncio.CancelledError:
                    process.send_signal("SIGKILL")
                    raise
                return process
        raise AssertionError(f"no script for {argv}")

    async def clock_of(self, host):
        return OURS

    async def ask(self, host, module, function, *arguments):
        return getattr(module, function)(*arguments)

    def lost(self, host):
        return asyncio.get_running_loop().create_future()

    async def why_lost(self, host):
        return ""

    def own_ports(self):
        return ()


class FakeParameters(Parameters):
    duration: Duration = Field(1.0, description="time to measure")
    label: str = Field("x", description="a word of the command")
    omit: Duration = Field(0.0, description="time that does not count")


STRANGE = {
    "nan": Sample(0, 1, {"throughput_bps": float("nan")}),
    "backwards": Sample(1, 0.5, {"throughput_bps": 1.0}),
    "inf": Summary({"rtt_s": {"min": 0.1, "max": float("inf")}}),
    "text": Sample(0, 1, {"throughput_bps": "fast"}),
    "when": Started(float("inf")),
    "object": Effective({"what": object()}),
}
"""Events that no store can keep."""


class FakeParser(LineParser):
    """Understands ``sample T0 T1 BPS``, ``total BPS``, ``count METRIC N``, and more."""

    def line(self, text, channel):
        if channel is Channel.STDERR:
            return
        word, *values = text.split()
        if word == "sample":
            start_s, end_s, bps = map(float, values)
            yield Sample(start_s, end_s, {"throughput_bps": bps})
        elif word == "rtt":
            yield Sample(0, 1, {"tcp_rtt_s": float(values[1])}, 0, Direction(values[0]))
        elif word == "probe":
            at_s, rtt_s = map(float, values)
            metrics = {"rtt_s": rtt_s}
            yield Sample(at_s, at_s + rtt_s, metrics, direction=Direction.ROUND_TRIP)
        elif word == "total":
            yield Summary({"throughput_bps": float(values[0])})
        elif word == "count":
            yield Summary({values[0]: float(values[1])})
        elif word == "started":
            yield Started(EPOCH + float(values[0]))
        elif word == "ready":
            yield Ready()
        elif word == "set":
            yield Effective({values[0]: values[1]})
        elif word == "warn":
            yield Warn(" ".join(values))
        elif word == "fail":
            yield Failure(FailureKind(values[0]), " ".join(values[1:]), "do something")
        elif word == "tell":
            yield STRANGE[values[0]]
        elif word == "crash":
            raise RuntimeError("a bug in the plugin")


class FakeBackend(Backend):
    name = "fake"
    summary = "measures nothing"
    parameters = FakeParameters
    capabilities = Capabilities(
        (Direction.SEND, Direction.RECEIVE), default_port=5201, needs_server=True
    )

    def probe(self, role):
        return None

    def read_probe(self, role, exit_code, output):
        return Tool("1")

    def client(self, flow):
        argv = ("client", flow.params.label, flow.address, str(flow.port))
        return Command(argv, FakeParser())

    def server(self, flow):
        argv = ("server", flow.params.label, str(flow.port))
        return Command(argv, FakeParser(), stays=flow.params.label == "stays")

    def duration_s(self, params):
        return params.duration


class EarlyBackend(FakeBackend):
    """A fake whose client waits itself for the common start."""

    name = "early"
    capabilities = Capabilities((Direction.SEND,), waits_for_start=True)

    def client(self, flow):
        return Command(("early", flow.params.label, f"at={flow.start_at_s}"), FakeParser())


class ChoosyBackend(FakeBackend):
    """A fake that has no command for some labels."""

    name = "choosy"

    def client(self, flow):
        if flow.params.label == "old":
            raise ValueError("version 1 here cannot do this")
        if flow.params.label == "bug":
            raise KeyError("label")
        if flow.params.label == "ours":
            raise StoreError("of benchctl's own errors", "look there")
        if flow.params.label == "exit":
            raise SystemExit(3)
        return super().client(flow)

    def server(self, flow):
        if flow.params.label == "lame":
            raise ValueError("version 1 here cannot serve")
        return super().server(flow)


class ProbedBackend(FakeBackend):
    """A fake whose program has to tell its version."""

    name = "probed"

    def probe(self, role):
        return Probe(("sh", "--version"), install="get it")

    def read_probe(self, role, exit_code, output):
        if exit_code:
            raise ValueError(f"sh --version says {output.strip()}")
        return Tool("1")


GOOD = Script([(0.5, "sample 0 0.5 100"), (1.0, "sample 0.5 1 300"), (1.1, "total 200")], 1.2)
SERVER = Script([(0.01, "ready")], ends_s=None)
