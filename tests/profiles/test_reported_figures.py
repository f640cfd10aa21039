"""The reported figures of the shipped profiles, against a second copy of the authors' tables."""

from statistics import fmean

import pytest
from profiles.test_shipped_profiles import SHIPPED, plan

MBIT, MS = 1e6, 1e-3
SECONDS = ("1s", "2s", "3s", "4s", "5s", "10s", "15s", "20s")


def mbit(where, value, flow=None):
    """One throughput in Mbit/s."""
    return {(flow, *sorted(where.items()), "throughput_bps"): value * MBIT}


def both_ends(axis, values, sent, received):
    """A sweep of which both ends' figures were printed."""
    return {
        (None, (axis, value), metric): figure * MBIT
        for metric, figures in (("sent_bps", sent), ("throughput_bps", received))
        for value, figure in zip(values, figures, strict=True)
    }


def sweep(fixed, axis, values, figures):
    """A sweep of one axis, in Mbit/s."""
    found = {}
    for value, figure in zip(values, figures, strict=True):
        found |= mbit({**fixed, axis: value}, figure)
    return found


def pairs(case, jain, rates, round_trips):
    """Pairs side by side: throughput in Mbit/s and ping in ms of each, and Jain's index."""
    found = {(None, ("case", case), "fairness_jain"): jain}
    for (flow, rate), rtt in zip(rates.items(), round_trips, strict=True):
        found[flow, ("case", case), "throughput_bps"] = rate * MBIT
        found[f"ping-{flow}", ("case", case), "rtt_s"] = rtt * MS
    return found


def alone(axis, figures):
    """Round trip in ms and throughput in Mbit/s of each value of an axis."""
    found = {}
    for value, (rtt, rate) in figures.items():
        found[None, (axis, value), "rtt_s"] = rtt * MS
        found[None, (axis, value), "throughput_bps"] = rate * MBIT
    return found


def three(algorithm, *figures):
    found = {}
    for number, figure in enumerate(figures, 1):
        found |= mbit({"congestion_control": algorithm}, figure, f"pair{number}")
    return found


def without_loss(path, rate):
    return mbit({"path": path}, rate) | {(None, ("path", path), "loss_ratio"): 0.0}


def each_way(axis, values, metric, there, back):
    ways = {"send": there, "receive": back}
    return {
        (None, (axis, value), way, metric): figure
        for way, figures in ways.items()
        for value, figure in zip(values, figures, strict=True)
    }


def over_ipv4(figures):
    """The same, of a profile that sweeps both versions."""
    return {
        (flow, where, ("ip_version", 4), *rest): figure
        for (flow, where, *rest), figure in figures.items()
    }


C7 = each_way(
    "count", (1, 10, 20, 100, 300, 500), "owd_s",
    [delay * MS for delay in (52.5, 51, 57.1, 57.6, 63.5, 64.9)],
    [delay * MS for delay in (-42.5, -48.7, -54.7, -55.3, -61.3, -62.6)],
)  # fmt: skip

PRINTED = {
    "owamp/c7-count": C7,
    "owamp/c7-clocks": C7,
    "owamp/c8-links": over_ipv4(
        each_way(
            "interface", ("wired", "wireless"), "owd_s",
            (89.2 * MS, 89.2 * MS), (-86.8 * MS, -84.9 * MS),
        )
        | each_way(
            "interface", ("wired", "wireless"), "pdv_p95_p50_s",
            (0.7 * MS, 1.7 * MS), (3.7 * MS, 4.1 * MS),
        )
        | each_way("interface", ("wired", "wireless"), "hops", (2, 2), (2, 2))
    ),
    "portfolio/a1-udp": without_loss("h1-h4", 28.3)
    | without_loss("h1-h9", 17.8)
    | without_loss("h7-h9", 17.8),
    "portfolio/a2-links": alone(
        "link", {"L1": (23.118, 38.12), "L2": (45.634, 28.47), "L3": (23.205, 19.08)}
    ),
    "portfolio/a3-paths": alone(
        "path", {"h1-h4": (64.995, 28.21), "h7-h9": (67.117, 18.97), "h1-h9": (87.996, 18.84)}
    ),
    "portfolio/a4-multiplexing": {
        **pairs("two pairs", 0.99998, {"h1-h4": 14.37, "h2-h5": 14.49}, (101.944, 100.987)),
        **pairs(
            "three pairs",
            0.999338,
            {"h1-h4": 9.85, "h2-h5": 9.37, "h3-h6": 9.94},
            (101.872, 98.627, 103.045),
        ),
        **pairs("L2 shared", 0.987192, {"h1-h4": 15.94, "h7-h9": 12.68}, (93.582, 91.829)),
        **pairs("nothing shared", 0.963082, {"h1-h4": 28.40, "h8-h9": 19.10}, (92.354, 40.277)),
    },
    "portfolio/a5-parallel": mbit({}, 8.76 + 7.94, "h1-h4")
    | mbit({}, 6.51, "h2-h5")
    | mbit({}, 6.51, "h3-h6"),
    "congestion-control/b1-one-pair": sweep(
        {}, "congestion_control", ("reno", "bbr"), (98.5, 95.4)
    ),
    "congestion-control/b3-three-pairs": three("reno", 40.1, 39.9, 38.9)
    | three("bbr", 29.1, 31.0, 30.3),
    "congestion-control/b4-unequal-access": three("reno", 9.64, 36.5, 48.6)
    | three("bbr", 9.30, 33.9, 46.6),
    "public/c1-wired-wireless": sweep(
        {"interface": "wired"}, "duration", (*SECONDS, "60s"),
        (117, 243, 292, 310, 325, 325, 332, 333, 331),
    )
    | sweep(
        {"interface": "wireless"}, "duration", (*SECONDS, "60s"),
        (10.1, 13.7, 14.1, 26, 38.8, 110, 82.2, 101, 29.1),
    ),
    "public-servers": sweep(
        {"direction": "send"}, "server", ("serverius", "paris", "tashkent", "biznet"),
        (360, 400, 200, 133),
    ),
    "public/c3-streams": both_ends(
        "streams", (*range(1, 11), 20),
        (99.1, 93.9, 371, 495, 445, 464, 491, 510, 514, 498, 500),
        (99.0, 93.8, 371, 494, 444, 462, 489, 509, 512, 495, 498),
    ),
    "public/c4-directions": sweep(
        {"direction": "send"}, "duration", SECONDS, (161, 217, 299, 305, 325, 321, 347, 296)
    )
    | sweep(
        {"direction": "receive"}, "duration", SECONDS,
        (45.5, 46.3, 39.1, 38.4, 35.5, 24.1, 35.5, 29.8),
    ),
    "public/c5-windows": both_ends(
        "window", ("0.01M", "0.05M", "0.1M", "0.15M", "0.2M", "0.5M", "1M"),
        (0.239, 1.48, 2.73, 4.24, 4.47, 5.43, 5.73),
        (0.239, 1.48, 2.73, 4.24, 4.44, 5.17, 5.04),
    ),
    "public/c6-iperf2": {(None, "sent_bps"): 29_100 * MBIT},
    "tcp-options/e3-both-directions": {
        (None, ("place", place), "send", "throughput_bps"): rate * MBIT
        for place, rate in {"first": 21.4, "second": 15.3, "third": 36.0}.items()
    },
    "tcp-options/e4-windows": sweep(
        {}, "window", ("5000B", "10000B", "16357B", "25000B", "40000B", "50000B", "60000B"),
        [fmean(four) for four in (
            (9.61, 11.7, 10.1, 11.6), (14.1, 12.8, 9.9, 12.7), (15.3, 16.1, 12.4, 14.2),
            (12.3, 14.4, 13.2, 15.8), (19.9, 18.2, 18.8, 20.5), (17.1, 19.2, 16.4, 20.3),
            (19.8, 21.7, 18.6, 19.2),
        )],
    ),
    "tcp-options/e5-udp-tcp": {
        **mbit({"case": "UDP alone"}, 16.7),
        **mbit({"case": "TCP alone"}, 11.5),
        (None, ("case", "UDP alone"), "jitter_rfc3550_s"): 3.479 * MS,
        (None, ("case", "UDP alone"), "loss_ratio"): round(1 / 2544, 6),
    },
    "tcp-options/e1-sack-initial-window": {
        **mbit({"sack": "off", "initial_window": 1}, 1.2390),
        **mbit({"sack": "off", "initial_window": 4}, 1.4070),
        **mbit({"sack": "on", "initial_window": 1}, 1.7803),
        **mbit({"sack": "on", "initial_window": 4}, 1.9202),
    },
    "tcp-options/e2-packets": {
        **mbit({}, 2.775), (None, "tcp_min_rtt_s"): 49.1 * MS, (None, "retransmits"): 52,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_every_reported_figure_is_as_its_authors_printed_it(name):
    shipped = {
        (one.flow, *sorted(one.where.items()), *filter(None, [one.direction]), metric): figure
        for one in plan(name).reported
        for metric, figure in one.metrics.items()
    }
    assert shipped == pytest.approx(PRINTED.get(name, {}), rel=1e-12)


def test_the_short_ones_of_c1_show_the_ramp_and_the_minute_leaves_it_out():
    omitted = {
        trial.point["duration"]: trial.flows[0].parameters.get("omit")
        for trial in plan("public/c1-wired-wireless")
    }
    assert omitted == {**dict.fromkeys(SECONDS), "60s": "1s"}
