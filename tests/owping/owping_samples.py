"""What owping 5.2.3 once printed, and lines of ``-R`` made by its format."""

from pathlib import Path

from contract import recorded
from hypothesis import settings

from benchctl.analysis.flow.figures import FlowFold
from benchctl.analysis.flow.packets import packet_figures
from benchctl.api import Direction, Sample, Summary, Warn, replay
from benchctl_owping.machine import MachineParser
from benchctl_owping.raw import RawParser

# The same examples on every run, and no matter how busy the machine is.
REPEATABLE = settings(derandomize=True, deadline=None)

SAMPLES = Path(__file__).with_name("samples")
SEND, RECEIVE = Direction.SEND, Direction.RECEIVE
BOTH = (SEND, RECEIVE)

# Each with the directions that its command asked for.
MACHINE = {
    "machine_M": BOTH, "bucket_b1us_M": BOTH, "dscp_EF_M": BOTH, "ipv6_M": BOTH,
    "offset_plus5ms_M": BOTH, "shim_sync25us_M": BOTH, "sigINT_L02_M": BOTH, "timeout_L0": BOTH,
    "padding_s70000_M": (SEND,), "shim_dup_to_M": (SEND,), "shim_loss_all_M": (SEND,),
    "shim_loss_to_M": (SEND,), "sigINT_M_f": (RECEIVE,),
}  # fmt: skip

# What a clock without NTP gives: the least error estimate that can be written.
UNKNOWN = (0, "2.32831e-10")
SYNCED = (1, "2.5034e-05")

# Seconds since 1900, as 32.32 fixed point: November 2026.
START = 4_004_207_000 << 32


def transcript(name):
    """Return stdout, stderr and exit code of a sample."""
    told = recorded(SAMPLES / name)
    return told.stdout, told.stderr, told.exit_code


def machine(name, count=100):
    return replay(MachineParser(count, MACHINE[name]), *transcript(name))


def raw(stdout, stderr=b"", code=0, direction=SEND, count=100):
    return replay(RawParser(count, direction), stdout, stderr, code)


def packet(seq, at_s, delay_s, clocks=UNKNOWN, ttl=255):
    """Return a line of -R; without a delay the packet is lost."""
    sync, error = clocks
    sent = START + round(at_s * 2**32)
    received = 0 if delay_s is None else sent + round(delay_s * 2**32)
    return f"{seq} {sent:020} {sync} {error} {received:020} {sync} {error} {ttl}\n".encode()


def figures(told):
    """Return the figures that the samples of one direction come to, without their spread."""
    fold = FlowFold()
    for sample in samples(told):
        fold.add_sample("client", sample)
    found = {**fold.figures(), **packet_figures(fold)}
    return {metric: figure.value for (_, metric), figure in found.items()}


def samples(told):
    return [event for event in told if isinstance(event, Sample)]


def summaries(told):
    return {event.direction: event.metrics for event in told if isinstance(event, Summary)}


def warned(told):
    return [event.message for event in told if isinstance(event, Warn)]
