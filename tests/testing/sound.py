"""A backend that keeps the contract; its tool is a shell's few words."""

import re
from collections.abc import Iterable, Iterator

from benchctl.api import (
    Backend,
    Capabilities,
    Channel,
    Command,
    Direction,
    Duration,
    Event,
    Failure,
    FailureKind,
    Field,
    Flow,
    Fold,
    LineParser,
    Metric,
    Parameters,
    ParserError,
    Probe,
    Ready,
    Role,
    Sample,
    Summary,
    Tool,
)

ROW = re.compile(r"(\d{1,6}\.\d) (\d{1,6}\.\d) (\d{1,15}) bit/s (\d{1,9}) pages")
TOTAL = re.compile(r"in all (\d{1,15}) bit/s")


class SoundParameters(Parameters):
    duration: Duration = Field(10.0, ge=0.1, le=3600, description="time to measure")
    streams: int = Field(1, ge=1, le=8, description="parallel connections")


class ServerParser(LineParser):
    def line(self, text: str, channel: Channel) -> Iterator[Event]:
        if text == "listening":
            yield Ready()


class ClientParser(LineParser):
    max_line = 4096

    def __init__(self) -> None:
        super().__init__()
        self.complaint = "no result"
        self.over = False

    def line(self, text: str, channel: Channel) -> Iterable[Event]:
        if channel is Channel.STDERR:
            self.complaint = text or self.complaint
        elif row := ROW.fullmatch(text):
            return self.row(*map(float, row.groups()))
        elif total := TOTAL.fullmatch(text):
            self.over = True
            return [Summary({"throughput_bps": float(total[1])})]
        else:
            raise ParserError(f"not a line of sound: {text[:40]!r}")
        return ()

    def row(self, start_s: float, end_s: float, rate_bps: float, pages: float) -> Iterable[Event]:
        if end_s < start_s:
            raise ParserError(f"a row from {start_s} to {end_s}")
        return [Sample(start_s, end_s, {"throughput_bps": rate_bps, "pages": pages})]

    def end(self, exit_code: int) -> Iterable[Event]:
        if not self.over:
            yield Failure(FailureKind.TOOL, self.complaint)


class Sound(Backend[SoundParameters]):
    name = "sound"
    summary = "what a shell echoes"
    parameters = SoundParameters
    capabilities = Capabilities(
        directions=(Direction.SEND, Direction.RECEIVE),
        needs_server=True,
        default_port=7009,
        metrics=(Metric("pages", "pages that were sent", Fold.COUNT, "higher"),),
    )
    client_parser: type[LineParser] = ClientParser

    def probe(self, role: Role) -> Probe | None:
        return Probe(("/bin/sh", "-c", "echo sound 1.0"), "comes with every system")

    def read_probe(self, role: Role, exit_code: int, output: str) -> Tool:
        name, _, version = output.strip().partition(" ")
        if exit_code or name != "sound":
            raise ValueError(f"not sound: {output[:40]!r}")
        return Tool(version)

    def client(self, flow: Flow[SoundParameters]) -> Command:
        if flow.source_device is not None:
            raise ValueError("sound binds to no device")
        row = f"echo 0.0 0.5 1000 bit/s {flow.params.streams} pages"
        words = f"{row}; sleep {flow.params.duration}; echo in all 1000 bit/s"
        return Command(("/bin/sh", "-c", words), self.client_parser())

    def server(self, flow: Flow[SoundParameters]) -> Command:
        argv = ("/bin/sh", "-c", "echo listening; exec sleep 60")
        return Command(argv, ServerParser(), stop_signal="SIGTERM", stays=True)

    def duration_s(self, params: SoundParameters) -> float:
        return params.duration


BACKEND = Sound()
