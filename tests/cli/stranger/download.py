"""How long curl takes to download a page, as somebody elsewhere would write it."""

import re

from benchctl.api import (
    Backend,
    Capabilities,
    Channel,
    Command,
    Direction,
    Failure,
    FailureKind,
    Field,
    Fold,
    LineParser,
    Metric,
    Parameters,
    ParserError,
    Probe,
    Sample,
    Tool,
)

REPORT = "%{http_code} %{time_total} %{size_download} %{speed_download}\\n"
LINE = re.compile(r"(\d{3}) (\d{1,6}\.\d{6}) (\d{1,15}) (\d{1,15})(?:\.\d+)?")


class DownloadParameters(Parameters):
    page: str = Field(pattern=r"^[\w./-]+$", description="path of the page on the server")
    count: int = Field(3, ge=1, le=100, description="downloads, one after the other")


class DownloadParser(LineParser):
    """A line for each download; curl reports no times of day, so they follow one another."""

    def __init__(self):
        super().__init__()
        self._end_s = 0.0
        self._complaint = ""

    def line(self, text, channel):
        if channel is Channel.STDERR:
            self._complaint = text
            return
        if not (match := LINE.fullmatch(text)):
            raise ParserError(f"not what curl was asked to print: {text[:80]!r}")
        status, (took_s, size, speed) = match[1], map(float, match.groups()[1:])
        if status != "200":
            if status != "000":  # curl says why on stderr
                yield Failure(FailureKind.REFUSED, f"the server answered {status}")
            return
        start_s, self._end_s = self._end_s, self._end_s + took_s
        metrics = {
            "download_time_s": took_s, "bytes_received": size, "throughput_bps": 8 * speed,
        }  # fmt: skip
        yield Sample(start_s, self._end_s, metrics, direction=Direction.RECEIVE)

    def end(self, exit_code):
        if exit_code:
            yield Failure(FailureKind.UNREACHABLE, self._complaint or f"curl ended: {exit_code}")


class Download(Backend):
    api_version = 1
    name = "download"
    summary = "time to download a page by HTTP, with curl"
    parameters = DownloadParameters
    capabilities = Capabilities(
        directions=(Direction.RECEIVE,),
        headline="download_time_s",
        protocols=("tcp",),
        default_port=8000,
        metrics=(Metric("download_time_s", "time of a download", Fold.DISTRIBUTION, "lower"),),
    )

    def probe(self, role):
        return Probe(("curl", "--version"), "apt install curl")

    def read_probe(self, role, exit_code, output):
        if not (match := re.match(r"curl (\d\S*)", output)):
            raise ValueError(f"curl --version says {output[:80]!r}")
        return Tool(match[1])

    def client(self, flow):
        params = flow.params
        url = f"http://{flow.address}:{flow.port}/{params.page}"
        one = ("--output", "/dev/null", "--write-out", REPORT, url)
        quiet = ("--silent", "--show-error", "--noproxy", "*")
        nexts = [word for _ in range(params.count - 1) for word in ("--next", *quiet, *one)]
        return Command(("curl", *quiet, *one, *nexts), DownloadParser())

    def duration_s(self, params):
        return 1.0 * params.count  # a guess: only the network knows


BACKEND = Download()
