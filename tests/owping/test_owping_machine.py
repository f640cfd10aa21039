import pytest
from owping.owping_samples import (
    BOTH,
    MACHINE,
    RECEIVE,
    SEND,
    machine,
    samples,
    summaries,
    transcript,
    warned,
)

from benchctl.api import (
    Effective,
    Failure,
    FailureKind,
    ParserError,
    Summary,
    replay,
)
from benchctl_owping.complaints import nothing_arrived
from benchctl_owping.machine import MachineParser


def parser(name):
    return MachineParser(100, MACHINE[name])


def test_a_summary_for_each_direction_in_the_order_to_then_from():
    told = machine("bucket_b1us_M")
    send, receive = (summaries(told)[direction] for direction in BOTH)
    assert send == {
        "packets_sent": 100,
        "packets_received": 100,
        "packets_lost": 0,
        "packets_duplicated": 0,
        "packets_reordered": 0,
        "packets_1_reordered": 0,
        "loss_ratio": 0,
        "owd_s": {
            "min": 1.00136e-05,
            "mean": pytest.approx(88.71e-6),
            "median": pytest.approx(5.2e-05),
            "p95": pytest.approx(11.595e-05),
            "max": 0.00295496,
        },
        "clock_synchronized": 0,
        "pdv_p95_p50_s": 6.3e-05,
        "hops": {"min": 0, "mean": 0, "median": 0, "p95": 0, "max": 0},
    }
    assert receive["owd_s"]["min"] != send["owd_s"]["min"]
    assert not samples(told)


def test_median_and_variation_are_those_of_owping_when_nothing_is_lost():
    printed = [
        float(line.split("\t")[1])
        for line in transcript("bucket_b1us_M")[0].decode().splitlines()
        if line.startswith("MEDIAN\t")
    ]
    figures = summaries(machine("bucket_b1us_M"))
    assert [figures[d]["owd_s"]["median"] for d in BOTH] == pytest.approx(printed)
    for direction in BOTH:
        delays = figures[direction]["owd_s"]
        variation = figures[direction]["pdv_p95_p50_s"]
        # OWAMP takes the nearest rank, and every distribution here what lies between two.
        assert delays["p95"] - delays["median"] == pytest.approx(variation, rel=0.05)


def test_what_was_in_force_is_read_back():
    (effective,) = (e for e in machine("dscp_EF_M") if isinstance(e, Effective))
    assert effective.settings == {
        "length_bytes": 14,
        "count": 100,
        "timeout_s": pytest.approx(2.0003, abs=1e-3),
        "bucket_width_s": 0.0001,
        "dscp": 46,
    }
    (effective,) = (
        e
        for e in replay(MachineParser(3, (SEND,)), *transcript("padding_s70000_M"))
        if isinstance(e, Effective)
    )
    # The clamped padding, not the 70000 bytes asked for.
    assert effective.settings["length_bytes"] == 65014


def test_a_bucket_never_says_more_than_the_exact_extremes():
    # Buckets of 100 us round 17 us up and -4.95 ms down.
    for name in ("machine_M", "offset_plus5ms_M", "ipv6_M"):
        for figures in summaries(machine(name)).values():
            delays = figures["owd_s"]
            ordered = [delays[key] for key in ("min", "median", "p95", "max")]
            assert ordered == sorted(ordered)


def test_negative_delays_stay():
    told = machine("offset_plus5ms_M")
    assert summaries(told)[SEND]["owd_s"]["min"] == -0.00499201
    assert summaries(told)[RECEIVE]["owd_s"]["min"] == 0.00500727


def test_synchronized_clocks_give_an_error():
    for figures in summaries(machine("shim_sync25us_M")).values():
        assert figures["clock_synchronized"] == 1
        assert figures["owd_error_s"] == 5.00679e-05


def test_the_error_of_clocks_that_are_not_synchronized_means_nothing():
    for figures in summaries(machine("machine_M")).values():
        assert "owd_error_s" not in figures


def test_loss_and_duplicates():
    lossy = summaries(machine("shim_loss_to_M"))[SEND]
    assert (lossy["packets_sent"], lossy["packets_lost"], lossy["loss_ratio"]) == (100, 10, 0.1)
    # More than 5 % lost: OWAMP has no 95th percentile, so no variation.
    assert "pdv_p95_p50_s" not in lossy
    assert lossy["owd_s"]["max"] == 0.00018692
    assert summaries(machine("shim_dup_to_M"))[SEND]["packets_duplicated"] == 10


def test_a_session_that_lost_everything_tells_so_and_fails():
    told = machine("shim_loss_all_M")
    assert summaries(told)[SEND]["loss_ratio"] == 1
    assert "owd_s" not in summaries(told)[SEND]
    assert "hops" not in summaries(told)[SEND]
    assert told[-1].kind is FailureKind.UNREACHABLE
    assert "none of 100 packets" in told[-1].message
    assert "hosts.NAME.ports of the other end" in told[-1].hint


def test_who_received_nothing_learns_which_ports_to_set():
    assert "hosts.NAME.ports of this end" in nothing_arrived(RECEIVE, 9).hint


def test_reordering_is_counted_where_packets_came_right_after_a_later_one():
    stdout, stderr, code = transcript("shim_dup_to_M")
    stdout = stdout.replace(b"\t1\t0\n", b"\t1\t9\n\t2\t3\n")
    figures = summaries(replay(parser("shim_dup_to_M"), stdout, stderr, code))[SEND]
    assert figures["packets_1_reordered"] == 9
    assert "packets_reordered" not in figures


def test_a_test_that_ended_early_is_a_measurement_with_a_warning():
    told = replay(MachineParser(300, BOTH), *transcript("sigINT_L02_M"))
    assert summaries(told)[SEND]["packets_sent"] == 224
    assert "224 of 300 packets were sent in direction send" in warned(told)
    assert not [event for event in told if isinstance(event, Failure)]


def test_exit_code_0_without_packets_is_a_failure():
    stdout, _, _ = transcript("sigINT_M_f")
    told = replay(MachineParser(200, (RECEIVE,)), stdout)
    assert summaries(told) == {}
    assert told[-1].kind is FailureKind.PEER
    assert "direction receive" in told[-1].message


@pytest.mark.parametrize(
    "name", ["offset_plus30s", "offset_minus30s", "sigTERM_mid", "sigINT_twice", "server_TERM_mid"]
)
def test_a_missing_session_to_the_server_is_a_failure_that_names_the_clocks(name):
    # The words are real; the block is that of another run, as these were taken as text.
    stdout = transcript("sigINT_M_f")[0]
    _, stderr, code = transcript(name)
    told = replay(MachineParser(200, BOTH), stdout, stderr, code)
    assert summaries(told) == {}
    assert told[-1].kind is FailureKind.PEER
    assert told[-1].hint


def test_a_single_block_is_the_session_from_the_server_only_when_owping_says_so():
    stdout, _, _ = transcript("machine_M")
    cut = stdout.index(b"SUMMARY", stdout.index(b"SUMMARY") + 1)
    told = replay(MachineParser(100, BOTH), stdout[:cut], exit_code=2)
    assert set(summaries(told)) == {SEND}
    complaint = b"owping: Unable to fetch data for sid(7f000001eeab5c39ab15831f5b0f5220)\n"
    told = replay(MachineParser(100, BOTH), stdout[cut:], complaint)
    assert set(summaries(told)) == {RECEIVE}
    assert isinstance(told[-1], Failure)


def test_half_a_block_is_no_summary():
    stdout, stderr, _ = transcript("shim_dup_to_M")
    told = replay(parser("shim_dup_to_M"), stdout[:-20], stderr, -9)
    assert [type(event) for event in told] == [Failure]


def test_noise_on_stderr_is_not_shown():
    stdout, _, _ = transcript("machine_M")
    stderr = transcript("neg_interval")[1]
    told = replay(MachineParser(100, BOTH), stdout, stderr)
    assert warned(told) == []


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        (b"SENT\t100", b"SENT\t90"),
        (b"LOST\t10", b"LOST\t101"),
        (b"SYNC\t0\n", b""),
        (b"<BUCKETS>\n", b"<BUCKETS>\n\tx\t1\n"),
        (b"SUMMARY\t3.00\n", b"SUMMARY\t3.00\nSUMMARY\t3.00\n"),
    ],
)
def test_a_summary_that_contradicts_itself_is_refused(what, instead):
    stdout, stderr, code = transcript("shim_loss_to_M")
    assert what in stdout
    with pytest.raises(ParserError):
        replay(parser("shim_loss_to_M"), stdout.replace(what, instead), stderr, code)


def test_keys_and_rows_without_an_end_are_refused():
    sink = MachineParser(10, BOTH)
    sink.feed(b"SUMMARY\t3.00\n")
    keys = ("".join(chr(65 + int(digit)) for digit in str(n)) for n in range(500))
    with pytest.raises(ParserError):
        sink.feed("".join(f"{key}\t1\n" for key in keys).encode())
    sink = MachineParser(10, BOTH)
    sink.feed(b"SUMMARY\t3.00\n<BUCKETS>\n")
    with pytest.raises(ParserError):
        sink.feed("".join(f"\t{n}\t1\n" for n in range(500)).encode())


def test_the_text_output_is_not_taken_for_a_summary():
    told = replay(MachineParser(100, BOTH), *transcript("default"))
    assert not [event for event in told if isinstance(event, Summary)]
    assert told[-1].kind is FailureKind.TOOL
