"""What the hosts of a trial counted, in words: a line for each, and what makes figures doubtful."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from benchctl.analysis.flow.counting import drops, is_busy
from benchctl.analysis.results import TrialReport
from benchctl.analysis.runs.summary import at_point
from benchctl.report.report import Report
from benchctl.report.text.limiting import limits_of
from benchctl.run.record import CpuUse, HostCounters, InterfaceCounters, Run, Trial
from benchctl.units import format_count, format_ratio, format_size

_COUNTS = {
    "TCP": {
        "tcp_segments_sent": "segment{s} sent",
        "tcp_segments_retransmitted": "retransmitted",
        "tcp_timeouts": "timeout{s}",
        "tcp_spurious_timeouts": "spurious timeout{s}",
    },
    "UDP": {
        "udp_datagrams_sent": "datagram{s} sent",
        "udp_datagrams_received": "received",
        "udp_no_port": "to a closed port",
    },
}
# A share of software interrupts that says where the time went.
_WORTH_SAYING = 0.1


class Doubt(NamedTuple):
    """Why a host, or the machine of a lab, makes the figures of a trial doubtful."""

    host: str
    reason: str
    text: str


def doubts(report: TrialReport, run: Run) -> list[Doubt]:
    """Return what makes the figures of a trial doubtful, a sentence for each host and reason.

    A host dropped what its flows can have lost there. A busy core matters to flows that carried
    data and that nothing else limits. The hosts of a lab share the processors of this machine. A
    flow within one machine always keeps them busy.
    """
    in_lab, network = run.settings.lab is not None, run.settings.network.network
    limited = [
        flow.flow
        for flow in report.flows
        if (in_lab or not network.is_one_machine(flow.flow.source, flow.flow.target))
        and any(limit.by.leaves_host for limit in limits_of(flow).values())
    ]
    found: dict[tuple[str, str], str] = {}
    for host, counted in report.trial.counters.items():
        machine = "this machine" if in_lab else host
        if dropped := drops(counted, host, report.flows):
            what = ", ".join(f"{count:,} {words}" for words, count in dropped.items())
            found[host, "drops"] = f"{host} dropped {what}: the host lost these, not the network"
        if late := counted.counts.get("softnet_dropped"):
            what = f"{late:,} packets at full input queues of its processors"
            found[machine, "queues"] = f"{machine} dropped {what}: it lost these, not the network"
        own = limited if in_lab else [f for f in limited if host in (f.source, f.target)]
        if own and counted.cpu is not None and is_busy(counted.cpu):
            what = _busy(counted.cpu, f" of {machine}")
            found[machine, "busy"] = f"{what}: the host, not the network, may be the limit"
    return [Doubt(*where, text) for where, text in found.items()]


def counters_text(counted: HostCounters) -> str:
    """Return what a host counted, in one line."""
    if counted.unread:
        return f"not read: {counted.unread}"
    parts = [_passed(name, interface) for name, interface in counted.interfaces.items()]
    parts += _counts(counted.counts)
    if squeezed := counted.counts.get("softnet_squeezed"):
        parts.append(f"input queues {squeezed:,} times left before they were empty")
    if counted.cpu is not None:
        parts.append(_busy(counted.cpu))
    return "; ".join(parts)


def counter_lines(report: Report) -> Iterator[str]:
    """Yield what makes the figures of a run doubtful: a line for each host and reason.

    It is that of the first such trial, with the number of the others.
    """
    seen: dict[tuple[str, str], list[tuple[Trial, str]]] = {}
    for ended in report.trials:
        for doubt in doubts(ended, report.run):
            seen.setdefault((doubt.host, doubt.reason), []).append((ended.trial, doubt.text))
    for found in seen.values():
        trial, text = found[0]
        where = f"trial {trial.position + 1}{at_point(trial.point, ' ({})')}, repeat {trial.repeat}"
        more = len(found) - 1
        others = f"; likewise {format_count(more, 'other trial')}" if more else ""
        yield f"{where}: {text}{others}"


def _passed(name: str, counts: InterfaceCounters) -> str:
    rx = f"received {format_size(counts.rx_bytes)} in {format_count(counts.rx_packets, 'packet')}"
    tx = f"sent {format_size(counts.tx_bytes)} in {format_count(counts.tx_packets, 'packet')}"
    lost = {
        "dropped": counts.rx_dropped + counts.tx_dropped,
        "errors": counts.rx_errors + counts.tx_errors,
    }
    lines = [f"{what} {count:,}" for what, count in lost.items() if count]
    return ", ".join([f"{name} {rx}", tx, *lines])


def _counts(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield the counts of each protocol that was used, in words."""
    for protocol, names in _COUNTS.items():
        known = {words: counts[name] for name, words in names.items() if counts.get(name)}
        lines = [f"{n:,} {words.format(s='s' * (n != 1))}" for words, n in known.items()]
        if lines:
            yield f"{protocol}: {', '.join(lines)}"


def _busy(cpu: CpuUse, of: str = "") -> str:
    """Return how busy the processors were, and by what the busiest."""
    parts = {"software interrupts": cpu.softirq_ratio, "the hypervisor": cpu.steal_ratio}
    by = [f"{format_ratio(share)} {who}" for who, share in parts.items() if share > _WORTH_SAYING]
    within = f" ({', '.join(by)})" if by else ""
    rest = f", all {cpu.cores} cores {format_ratio(cpu.busy_ratio)}" if cpu.cores > 1 else ""
    return f"core {cpu.busiest}{of} {format_ratio(cpu.busiest_ratio)} busy{within}{rest}"
