"""What the packets of flows say, on a page: in short, and everything of some flows, folded."""

from __future__ import annotations

from collections.abc import Iterator

from benchctl.report.page.blocks import Block, Code, PageSection, Paragraph
from benchctl.report.report import Report
from benchctl.report.text.captured import packet_lines, packets_text
from benchctl.visible import visible

MOST_FLOWS = 20
"""Flows of which a page has everything that their packets say."""


def packet_sections(report: Report) -> Iterator[PageSection]:
    """Yield a section if the packets of any flow were recorded."""
    found = [
        (f"{flow.flow.name}, trial {trial.trial.position + 1}", text)
        for trial in report.trials
        for flow in trial.flows
        if (text := "\n".join(packets_text(flow.flow)))
    ]
    if not found:
        return
    blocks: list[Block] = [Code("\n".join(map(visible, packet_lines(report))))]
    blocks += [
        PageSection(f"Packets of {name}", [Code(text)], folded=True, long=True)
        for name, text in found[:MOST_FLOWS]
    ]
    if len(found) > MOST_FLOWS:
        blocks.append(Paragraph(f"and {len(found) - MOST_FLOWS:,} more: benchctl show --trials"))
    yield PageSection("What the packets say", blocks)
