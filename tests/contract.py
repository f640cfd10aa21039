"""The contract of a backend for the bundled ones, and transcripts that are four files each."""

import re
from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.held import held
from benchctl.analysis.flow.laws import terms_of
from benchctl.api import Channel, Role, Sample, Summary, Tool
from benchctl.testing import BackendContract, Piece, Transcript
from benchctl.testing.rules.bounded import blocks_of
from benchctl.testing.rules.feeding import events_of
from benchctl.testing.transcript import transcripts_in

TOOL = Tool("1.0")
# Those that a flow may have, and those that none can.
FACTORS = (0.0, 0.5, 0.99, 1.01, 2.0, 10.0, 1e3, 1e6)
_NUMBER = re.compile(rb"(?<![\w.])\d+(\.\d+)?(?![\w.])")


def folded(transcript, backend, blocks):
    """Return the fold of a flow whose tool printed some blocks."""
    events, _ = events_of(transcript.parser(backend), blocks, transcript.exit_code)
    fold = FlowFold(backend.capabilities.metrics)
    for event in events:
        if isinstance(event, Sample):
            fold.add_sample(transcript.role, event)
        elif isinstance(event, Summary):
            fold.add_summary(event)
    return fold


@cache
def measured(subject):
    """Return the transcripts of a subject that have figures, those apart that take long."""
    found = [one for one in subject.parsed.values() if len(one.stdout) < 50_000]
    return [one for one in found if folded(one, subject.backend, blocks_of(one)).figures()]


class BundledContract(BackendContract):
    """The contract with a port that nothing else takes."""

    def test_a_flow_on_loopback_measures_in_each_direction(self, port):
        self.port = port
        super().test_a_flow_on_loopback_measures_in_each_direction()

    def test_no_process_stays(self, port):
        self.port = port
        super().test_no_process_stays()

    # To shrink a whole transcript takes minutes.
    @settings(
        max_examples=40, phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.differing_executors],
    )  # fmt: skip
    @given(data=st.data())
    def test_whatever_its_tool_reports_nothing_that_counts_breaks_a_law(self, data):
        """Flows in the tool's own format whose numbers are others than those that were recorded."""
        backend = self.backend
        transcript = data.draw(st.sampled_from(measured(self._subject())))
        chance = data.draw(st.randoms(use_true_random=False))
        share = data.draw(st.sampled_from((0.02, 0.2, 1.0)))

        def other(match):
            if chance.random() > share:
                return match[0]
            number = float(match[0]) * chance.choice(FACTORS)
            digits = len(match[1] or b".") - 1
            return f"{number:.{digits}f}".encode()

        blocks = [
            (channel, _NUMBER.sub(other, text) if channel is Channel.STDOUT else text)
            for channel, text in blocks_of(transcript)
        ]
        fold = folded(transcript, backend, blocks)
        reported = fold.figures()
        parameters = transcript.flow(backend).params.model_dump(by_alias=True)
        terms = replace(terms_of(parameters), lasted_s=fold.lasted_s)
        found = held(reported, terms, fold.others())
        counting = {key: figure for key, figure in found.items() if figure.counts}
        again = held(counting, terms, fold.others())
        assert [key for key, one in again.items() if one.broken and not one.counts] == []
        for key, one in reported.items():  # what the tool reported can always be found
            told = one.value if one.rejected is None else one.rejected
            assert told in (found[key].value, found[key].rejected)


def kept(room):
    """Return the transcripts that `benchctl backends record` wrote for a room, by name."""
    found = transcripts_in(Path(__file__).parent / room / "transcripts")
    return {path.name: told for path, told in found.items()}


def recorded(path, **more):
    """Return a transcript kept as PATH.out, PATH.err and PATH.rc; see `said`."""
    kept = {
        channel: path.with_name(f"{path.name}.{suffix}").read_bytes()
        for channel, suffix in ((Channel.STDOUT, "out"), (Channel.STDERR, "err"))
    }
    code = int(path.with_name(f"{path.name}.rc").read_text())
    return said(*kept.items(), exit_code=code, **more)


def said(*pieces, exit_code=0, role=Role.CLIENT, tool=TOOL, direction=None, **parameters):
    """Return a transcript of pieces, each with its channel, and of the flow's parameters."""
    return Transcript(
        backend="", argv=(), exit_code=exit_code, role=role, tool=tool, direction=direction,
        parameters=parameters, pieces=tuple(Piece(0.0, *piece) for piece in pieces if piece[1]),
    )  # fmt: skip
