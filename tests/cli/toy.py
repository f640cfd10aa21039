"""A backend whose tool is a shell script, named to benchctl as a single file.

``plan`` is what the tool does, in words: ``ok`` prints three samples and a total; ``hang`` prints
one sample and waits for ten minutes; ``fail`` says why on stderr and ends with code 3; ``refuse``
says what helps; ``lucky`` and ``luckier`` have a metric of their own.
"""

from benchctl.api import (
    Backend,
    Capabilities,
    Channel,
    Command,
    Direction,
    Duration,
    Failure,
    FailureKind,
    Field,
    Fold,
    LineParser,
    Metric,
    Parameters,
    Probe,
    Sample,
    Summary,
    Tool,
)

SCRIPTS = {
    "ok": "for i in 0 1 2; do echo sample $i 9000; done; echo total 9000",
    "lucky": "echo sample 0 8000; echo luck 1",
    "luckier": "echo sample 0 8000; echo luck 2",
    "hang": "echo sample 0 8000; sleep 600",
    "fail": "echo sample 0 8000; echo no luck today >&2; exit 3",
    "refuse": "echo refused; exit 1",
}


class ToyParameters(Parameters):
    duration: Duration = Field(0.1, description="planned time")
    plan: str = Field("ok", description="what the tool does")


class ToyParser(LineParser):
    def line(self, text, channel):
        if channel is Channel.STDERR:
            return
        word, *values = text.split()
        if word == "refused":
            yield Failure(FailureKind.REFUSED, "it will not", "ask it nicely")
        elif word == "sample":
            start_s = float(values[0])
            yield Sample(start_s, start_s + 1, {"throughput_bps": float(values[1])})
        elif word == "total":
            yield Summary({"throughput_bps": float(values[0])})
        elif word == "luck":
            yield Summary({"luck": float(values[0])})


class Toy(Backend):
    name = "toy"
    summary = "a shell script that plays a tool"
    parameters = ToyParameters
    capabilities = Capabilities(
        (Direction.SEND,), metrics=(Metric("luck", "good fortune", Fold.VALUE, "higher"),)
    )

    def probe(self, role):
        return Probe(("sh", "-c", "echo toy 1.0"), "it is part of every system")

    def read_probe(self, role, exit_code, output):
        return Tool(output.split()[1])

    def client(self, flow):
        return Command(("sh", "-c", SCRIPTS[flow.params.plan]), ToyParser())

    def duration_s(self, params):
        return params.duration


BACKEND = Toy()
