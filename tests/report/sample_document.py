"""A document with one of everything that a report has to show."""


def entry(
    point, metric, mean, *, flow="bulk", direction="send", n=3, half=None, stdev=None, unit=""
):
    return {
        "point": point, "flow": flow, "direction": direction, "metric": metric, "n": n,
        "mean": mean, "stdev": stdev, "ci95_low": None if half is None else mean - half,
        "ci95_high": None if half is None else mean + half,
        "median": mean, "min": mean, "max": mean, "unit": unit,
    }  # fmt: skip


def flow(name, status="ok", expected=None, error="", reported=None, hint="", requested=None):
    direction = "round-trip" if name == "ping" else "send"
    return {
        "name": name, "backend": "iperf3", "from": "local", "to": "paris", "direction": direction,
        "status": status, "error": error, "hint": hint, "attempts": 1, "port": 5201,
        "command": ["iperf3", "-c", "paris"], "server_command": [], "requested": requested or {},
        "effective": {}, "expected": expected or {}, "metrics": {}, "sources": {},
        "reported": reported or {},
    }  # fmt: skip


ONE, TWO = {"streams": 1, "to": "paris"}, {"streams": 2, "to": "paris"}
EXPECTED = {"throughput_bps": 95e6, "rtt_s": 0.02}

DOCUMENT = {
    "schema_version": 1,
    "run": {
        "id": "20261121-004512-7f3a", "profile": "sample", "title": "Streams | to Paris",
        "started": "2026-11-21T00:45:12.000+00:00", "finished": "2026-11-21T00:46:12.000+00:00",
        "status": "failed", "error": "", "seed": 7, "order": "interleaved", "trials": 4,
        "axes": {"streams": [1, 2], "to": ["paris"]}, "profile_sha256": "0" * 64, "facts": {},
    },
    "trials": [
        {
            "index": 0, "repeat": 1, "point": ONE, "status": "ok", "error": "",
            "started": "2026-11-21T00:45:12.000+00:00", "start_skew_s": 0.0012,
            "fairness_jain": 0.99981, "reported": {"fairness_jain": 0.993}, "links": [],
            "links_kept": None, "flows": [
                flow("bulk", expected=EXPECTED, reported={"throughput_bps": 93.4e6}),
                flow("ping", expected=EXPECTED),
            ],
        },
        {
            "index": 1, "repeat": 1, "point": TWO, "status": "failed",
            "error": "bulk: connection refused", "started": "2026-11-21T00:45:32.000+00:00",
            "start_skew_s": None, "fairness_jain": None, "reported": {}, "links": [],
            "links_kept": None, "flows": [
                flow("bulk", "failed", error="connection refused", hint="is the server running?"),
                flow("ping"),
            ],
        },
        {
            "index": 2, "repeat": 2, "point": TWO, "status": "ok", "error": "",
            "started": "2026-11-21T00:45:52.000+00:00", "start_skew_s": None,
            "fairness_jain": None, "reported": {}, "links": [{"link": "far", "kept": False}],
            "links_kept": False,
            "flows": [flow("bulk", expected=EXPECTED), flow("ping", expected=EXPECTED)],
        },
    ],
    "summary": [
        entry(ONE, "throughput_bps", 94.123e6, half=0.31e6, unit="bit/s"),
        entry(ONE, "retransmits", 3.5, half=1.2),
        entry(ONE, "rtt_s", 0.02041, flow="ping", direction="round-trip", half=0.0002, unit="s"),
        entry(ONE, "loss_ratio", 0.0125, flow="ping", direction="round-trip", unit="ratio", n=1),
        entry(TWO, "throughput_bps", 99.96e6, n=1, unit="bit/s"),
        entry(TWO, "rtt_s", 0.0000004, flow="ping", direction="round-trip", n=1, unit="s"),
        entry(ONE, "fairness_jain", 0.99981, flow="", direction="", n=1),
    ],
    "expectations": [
        {"text": "throughput_bps of bulk at streams=1", "met": False},
        {"text": "rtt_s of ping at streams=1", "met": True},
    ],
}  # fmt: skip
