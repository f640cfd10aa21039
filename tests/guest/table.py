"""Prints what links promise and what they did: ``python tests/guest/table.py kernel|user [PART]``.

Rows of a Markdown table. `test_promises` holds the same to bounds.
"""

import sys
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from guest.measuring import flood, pair, start, transfer

from benchctl.lab.emulate.link import Change
from benchctl.lab.topology.model import Emulator

EMULATOR = Emulator(sys.argv[1])


def row(promise, measured):
    print(f"| {promise} | {measured} |", flush=True)


def delays(text, payload=56, gap_s=5e-3):
    with pair(EMULATOR, text) as lab:
        return sorted(flood(lab, 200, payload, gap_s).delays_s)


def ms(value_s):
    return f"{value_s * 1e3:.3f}"


def as_built():
    row("delay 10 ms, median", ms(delays('delay = "10ms"')[100]))
    found = delays('delay = "10ms", jitter = "3ms"')
    row("jitter 10 +- 3 ms", f"{ms(found[0])} to {ms(found[-1])}")
    row("98 B at 256 kbit/s: 3.063 ms", ms(delays('rate = "256kbit"')[100]))
    found = delays('rate = "10Mbit", delay = "10ms"', 1472)
    row("1514 B at 10 Mbit/s and 10 ms: 11.211 ms", ms(found[100]))
    with pair(EMULATOR, 'rate = "10Mbit", delay = "10ms", queue = 50') as lab:
        arrived = flood(lab, 2000, 1472, 2e-4)
        row("a flood at 10 Mbit/s", f"{arrived.rate_bps / 1e6:.3f}")
        row("least gap of its frames: 1.211 ms", ms(min(arrived.gaps_s)))
        row("longest wait in a queue of 50: 71.8 ms", ms(max(arrived.delays_s)))
    with pair(EMULATOR, 'rate = "2Mbit", delay = "5ms", loss = "1%", queue = 50') as lab:
        arrived = flood(lab, 3000, 1472, 3e-3)
        row("2 Mbit/s with 1 % of loss: 1.98 Mbit/s", f"{arrived.rate_bps / 1e6:.3f}")


def tcp():
    with pair(EMULATOR, 'rate = "20Mbit", queue = 100') as lab:
        found = transfer(lab, 5)
        dropped = lab.counters("L", "a").dropped
        row("Reno at 20 Mbit/s, queue 100: RTT at most 61.2 ms", ms(found.rtt_max_s))
        row("its retransmissions, and frames dropped", f"{found.retransmits}, {dropped}")
    with pair(EMULATOR, 'rate = "100Mbit", delay = "5ms", queue = 100') as lab:
        row("Reno at 100 Mbit/s, 5 ms: RTT at most 22.3 ms", ms(transfer(lab, 5).rtt_max_s))


def changes():
    with pair(EMULATOR, 'rate = "1Mbit", delay = "10ms", queue = 1000') as lab:
        changed = []

        def meanwhile():
            time.sleep(1.5)
            lab.change("L", Change(rate_bps=10e6), leaving="a")
            changed.append(time.monotonic())

        arrived = flood(lab, 3000, 1472, 1e-3, meanwhile=meanwhile)
        fast = next(
            b[2]
            for a, b in zip(arrived.rows, arrived.rows[1:], strict=False)
            if b[2] > changed[0] and b[2] - a[2] < 2e-3
        )
        # Behind the delay, what was being sent, and the first frame at the new rate.
        late_s = fast - changed[0] - 10e-3 - 12.112e-3 - 1.211e-3
        row("a new rate holds for all that waits within 20 ms", ms(max(late_s, 0.0)))
    with pair(EMULATOR, 'delay = "50ms"') as lab:

        def shrink():
            time.sleep(0.5)
            lab.change("L", Change(delay_s=5e-3), leaving="a")

        arrived = flood(lab, 1500, 56, 1e-3, meanwhile=shrink)
        row("frames overtaken when 50 ms become 5 ms: 0", arrived.overtaken)


def rates():
    def together(link, count):
        with ExitStack() as stack:
            labs = [stack.enter_context(pair(EMULATOR, link)) for _ in range(count)]
            for lab in labs:
                stack.enter_context(start(lab, "b", "iperf3", "-s", "-1"))
            time.sleep(1)
            clients = [
                stack.enter_context(
                    start(lab, "a", "iperf3", "-c", lab.nodes["b"].address,
                          *["-t", "3", "-C", "reno", "-f", "k"])
                )
                for lab in labs
            ]  # fmt: skip
            texts = [client.stdout.read() for client in clients]
        received = [text.split("receiver")[0].splitlines()[-1].split() for text in texts]
        return sum(float(words[words.index("Kbits/sec") - 1]) for words in received)

    bare = together("mtu = 1500", 1)
    one = together('rate = "10Gbit", delay = "0.1ms", queue = 2000', 1)
    three = together('rate = "10Gbit", delay = "0.1ms", queue = 2000', 3)
    row("TCP over one fast link, of a bare cable's rate", f"{one / bare:.2f}")
    row("over three at once, together", f"{three / bare:.2f}")


if __name__ == "__main__":
    for part in (as_built, tcp, changes, rates):
        if part.__name__ in (sys.argv[2:] or [part.__name__]):
            part()
