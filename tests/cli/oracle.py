"""A backend that measures nothing that others do: its flows are known by a metric of its own."""

from benchctl.api import (
    Backend,
    Capabilities,
    Command,
    Direction,
    Field,
    Fold,
    LineParser,
    Metric,
    Parameters,
    Probe,
    Sample,
    Tool,
)


class OracleParameters(Parameters):
    truth: int = Field(1, description="what it says first")


class OracleParser(LineParser):
    def line(self, text, channel):
        second, clarity, doubts = map(float, text.split())
        yield Sample(second, second + 1, {"clarity_ratio": clarity, "doubts": doubts, "nods": 1.0})


class Oracle(Backend):
    name = "oracle"
    summary = "a line of shell that says something"
    parameters = OracleParameters
    capabilities = Capabilities(
        (Direction.SEND,),
        headline="clarity_ratio",
        metrics=(
            Metric("nods", "how often it nodded", Fold.COUNT),
            Metric("doubts", "how often it doubted", Fold.COUNT, "lower", wanted=True),
            Metric("clarity_ratio", "how clear it was", Fold.DISTRIBUTION, "higher"),
        ),
    )

    def probe(self, role):
        return Probe(("sh", "-c", "echo oracle 1.0"), "it is part of every system")

    def read_probe(self, role, exit_code, output):
        return Tool(output.split()[1])

    def client(self, flow):
        script = f"for i in 0 1; do echo $i 0.5 {flow.params.truth}; done"
        return Command(("sh", "-c", script), OracleParser())

    def duration_s(self, params):
        return 0.1


BACKEND = Oracle()
