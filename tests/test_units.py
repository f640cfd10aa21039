import math
import re
import tomllib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from benchctl import api, units
from benchctl.units import (
    format_duration,
    format_mean,
    format_range,
    format_rate,
    format_ratio,
    format_size,
    format_value,
    magnitude,
    parse_duration,
    parse_rate,
    parse_ratio,
    parse_size,
    parse_value,
    quoted,
    scale_of,
    unit_of,
    write_like,
)

PARSERS = {
    api.Duration: parse_duration,
    api.Rate: parse_rate,
    api.Size: parse_size,
    api.Ratio: parse_ratio,
}
kinds = st.sampled_from(list(PARSERS))


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_duration, "10s", 10.0),
        (parse_duration, "250ms", 0.25),
        (parse_duration, "20us", 20e-6),
        (parse_duration, "20µs", 20e-6),
        (parse_duration, "20μs", 20e-6),
        (parse_duration, "7ns", 7e-9),
        (parse_duration, "5min", 300.0),
        (parse_duration, "1.5h", 5400.0),
        (parse_duration, ".5 s", 0.5),
        (parse_duration, "0s", 0.0),
        (parse_rate, "100Mbit", 100e6),
        (parse_rate, "2.3Gbit/s", 2_300_000_000.0),
        (parse_rate, "64kbit", 64e3),
        (parse_rate, "64Kbit", 64e3),
        (parse_rate, "1Tbit", 1e12),
        (parse_rate, "9600bit/s", 9600.0),
        (parse_rate, "unlimited", math.inf),
        (parse_size, "1448B", 1448.0),
        (parse_size, "64kB", 64_000.0),
        (parse_size, "1MB", 1e6),
        (parse_size, "2GB", 2e9),
        (parse_size, "256K", 262_144.0),
        (parse_size, "256KiB", 262_144.0),
        (parse_size, "4M", 4_194_304.0),
        (parse_size, "1GiB", 1_073_741_824.0),
        (parse_size, "0.01M", 10_486.0),
        (parse_ratio, "2%", 0.02),
        (parse_ratio, "0.1%", 0.001),
        (parse_ratio, "100%", 1.0),
    ],
)
def test_a_quantity_is_read_exactly(parse, text, value):
    assert parse(text) == value


NO_DURATION = 'is not a duration; write it as in "10s" or "250ms"'
SECONDS = "a duration is in ns, us, ms, s, min, h, d"
BITS = "a rate is in bit, kbit, Mbit, Gbit, Tbit"
BITS_OR_BYTES = 'could be bits or bytes per second; write "Mbit", "Gbit", …'
BYTES = "a size is in B, kB, MB, GB, TB, K, M, G, KiB, MiB, GiB, TiB"


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_duration, "5m", '"5m" could be minutes or milliseconds; write "min" or "ms"'),
        (parse_duration, "5", f'"5": no unit; {SECONDS}'),
        (parse_duration, "5S", f'"5S": unknown unit "S"; {SECONDS}'),
        (parse_duration, 5, '5 has no unit; write a duration as in "10s" or "250ms"'),
        (parse_duration, 0.5, '0.5 has no unit; write a duration as in "10s" or "250ms"'),
        (parse_duration, "-5s", f'"-5s" {NO_DURATION}'),
        (parse_duration, "1e3s", f'"1e3s" {NO_DURATION}'),
        (parse_duration, "5.s", f'"5.s" {NO_DURATION}'),
        (parse_duration, " 5s", f'" 5s" {NO_DURATION}'),
        (parse_duration, "5s\n", rf'"5s\n" {NO_DURATION}'),
        (parse_duration, "\u0665s", f'"\u0665s" {NO_DURATION}'),
        (parse_duration, "unlimited", f'"unlimited" {NO_DURATION}'),
        (parse_duration, True, f"true {NO_DURATION}"),
        (parse_duration, [1], f"[1] {NO_DURATION}"),
        (parse_rate, "10Mbps", f'"10Mbps" {BITS_OR_BYTES}'),
        (parse_rate, "10MB/s", f'"10MB/s" {BITS_OR_BYTES}'),
        (parse_rate, "10M", f'"10M": unknown unit "M"; {BITS}'),
        (parse_rate, "10mbit", f'"10mbit": unknown unit "mbit"; {BITS}'),
        (parse_size, "64KB", '"64KB" could be 1000 or 1024 bytes each; write "kB" or "KiB"'),
        (parse_size, "64k", f'"64k": unknown unit "k"; {BYTES}'),
        (parse_size, "64Kbit", f'"64Kbit": unknown unit "Kbit"; {BYTES}'),
        (parse_ratio, "0.02", '"0.02": no unit; a ratio is in %'),
        (parse_ratio, 0.02, '0.02 has no unit; write a ratio as in "2%"'),
        (parse_ratio, "101%", '"101%" is more than "100%"'),
        (parse_rate, f"{'9' * 400}Mbit", f'"{"9" * 400}Mbit" is too large'),
    ],
)
def test_what_can_be_read_in_two_ways_or_none_is_refused(parse, text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse(text)


def read(kind, text):
    """Return the value of a text and an empty message, or None and the reason of its refusal."""
    try:
        return PARSERS[kind](text), ""
    except ValueError as error:
        return None, str(error)


@given(kinds, st.data())
def test_what_the_schema_allows_is_read(kind, data):
    pattern = TypeAdapter(kind).json_schema()["pattern"]
    # In JSON Schema "$" is the very end; in Python a line end may follow.
    text = data.draw(st.from_regex(pattern.replace("$", r"\Z")))
    value, message = read(kind, text)
    assert value is not None or message.endswith(("is too large", 'is more than "100%"'))


LIKE_A_QUANTITY = st.from_regex(r"[0-9.]{0,4} ?[a-zA-Zµμ%/]{0,6}", fullmatch=True) | st.text()


@given(kinds, LIKE_A_QUANTITY)
@example(api.Size, "64KB")
@example(api.Duration, "5µs")
@example(api.Rate, "unlimited")
def test_what_is_read_is_allowed_by_the_schema_and_the_rest_is_refused_in_one_line(kind, text):
    value, message = read(kind, text)
    assert message.isprintable()
    if value is not None:
        assert value >= 0
        assert re.search(TypeAdapter(kind).json_schema()["pattern"], text)


@given(kinds, st.none() | st.booleans() | st.floats() | st.lists(st.integers()) | st.binary())
def test_what_is_not_text_is_refused(kind, value):
    with pytest.raises(ValueError, match=r"has no unit|is not a "):
        PARSERS[kind](value)


@given(st.decimals(0, 10**6, places=3), st.sampled_from(["ns", "us", "ms", "s"]))
def test_a_decimal_duration_is_the_nearest_float(number, unit):
    power = {"ns": -9, "us": -6, "ms": -3, "s": 0}[unit]
    assert parse_duration(f"{number}{unit}") == float(number.scaleb(power))


@given(st.decimals(0, 10**6, places=3), st.sampled_from(["bit", "kbit", "Mbit", "Gbit"]))
def test_a_decimal_rate_is_the_nearest_float(number, unit):
    power = {"bit": 0, "kbit": 3, "Mbit": 6, "Gbit": 9}[unit]
    assert parse_rate(f"{number}{unit}") == float(number.scaleb(power))


@pytest.mark.parametrize(
    ("show", "parse", "most"),
    [
        (format_duration, parse_duration, 119),
        (format_rate, parse_rate, 9e14),
        (format_size, parse_size, 2**40),
        (format_ratio, parse_ratio, 1),
    ],
)
def test_what_is_shown_can_be_read_and_is_right_to_three_digits(show, parse, most):
    @given(st.floats(1e-3, most))
    @example(1.0)
    @example(most)
    def check(value):
        if parse is parse_size:
            value = float(round(value))
        assert parse(show(value)) == pytest.approx(
            value, rel=0.005, abs=1e-3 * (parse is parse_rate)
        )

    check()


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [
        (format_duration, 0.0204, "20.4 ms"),
        (format_duration, -0.0052, "-5.20 ms"),
        (format_duration, 0, "0 s"),
        (format_duration, 0.9996, "1.00 s"),
        (format_duration, 119.6, "2 min 00 s"),
        (format_duration, 320, "5 min 20 s"),
        (format_duration, -320, "-5 min 20 s"),
        (format_duration, 7380, "2 h 03 min"),
        (format_rate, 94.1e6, "94.1 Mbit/s"),
        (format_rate, 999.6e3, "1.00 Mbit/s"),
        (format_rate, 0, "0 bit/s"),
        (format_rate, math.inf, "unlimited"),
        (format_size, 262_144, "256 KiB"),
        (format_size, 1023, "1023 B"),
        (format_size, 1448, "1.41 KiB"),
        (format_ratio, 0.025, "2.5 %"),
        (format_ratio, 0, "0 %"),
        (format_ratio, 39.53, "3953 %"),
    ],
)
def test_a_figure_is_shown_in_its_scale(show, value, text):
    assert show(value) == text


def test_a_value_is_shown_and_read_by_the_unit_that_its_name_ends_with():
    assert format_value("throughput_bps", 1e6) == "1.00 Mbit/s"
    assert format_value("rtt_s", 0.02) == "20.0 ms"
    assert format_value("cwnd_bytes", 1024) == "1.00 KiB"
    assert format_value("bytes_sent", 1.5 * 2**30) == "1.50 GiB"
    assert format_value("loss_ratio", 0.5) == "50 %"
    assert format_value("retransmits", 123_456.7) == "123457"
    assert format_value("retransmits", 1.5) == "1.5"
    assert format_value("retransmits", 12) == "12"
    assert parse_value("throughput_bps", "1Mbit") == 1e6
    assert parse_value("retransmits", 12) == parse_value("bytes_sent", 12) == 12.0
    assert parse_value("owd_s", "-42.5ms") == -0.0425
    names = ("a_bps", "a_s", "a_bytes", "bytes_sent", "a_ratio", "hops")
    assert [unit_of(name) for name in names] == ["bit/s", "s", "B", "B", "ratio", ""]


@pytest.mark.parametrize(
    ("name", "low", "high", "text"),
    [
        ("throughput_bps", 12.1e6, 13e6, "12.1 … 13.0 Mbit/s"),
        ("throughput_bps", 5.22e6, 357e6, "5.22 … 357 Mbit/s"),
        ("throughput_bps", 9.996e6, 10.04e6, "10.0 … 10.0 Mbit/s"),
        ("rtt_s", 0.0, 0.0204, "0 … 20.4 ms"),
        ("loss_ratio", 0.121, 0.13, "12.1 … 13.0 %"),
        ("loss_ratio", 0.0001, 1.0, "0.01 … 100 %"),
        ("retransmits", 5, 1234, "5 … 1234"),
        ("retransmits", 2.5, 5, "2.5 … 5.0"),
        ("fairness_jain", 0.963, 1.0, "0.9630 … 1.0000"),
    ],
)
def test_both_ends_of_a_range_have_one_unit_and_as_many_digits(name, low, high, text):
    assert format_range(name, low, high) == text


def test_a_range_of_differences_has_signs():
    assert format_range("throughput_bps", -400e3, 6.8e6, signed=True) == "-0.400 … +6.80 Mbit/s"
    assert format_range("loss_ratio", 0, 0, signed=True) == "0 … 0 %"


@pytest.mark.parametrize("value", ["12", True, math.nan, math.inf, None])
def test_a_count_is_a_plain_finite_number(value):
    with pytest.raises(ValueError, match="is not a number"):
        parse_value("retransmits", value)


def test_a_scale_suits_the_value():
    assert scale_of("throughput_bps", 94e6) == (1e6, "Mbit/s")
    assert scale_of("rtt_s", 0.02) == (1e-3, "ms")
    assert scale_of("rtt_s", 0) == (1.0, "s")
    assert scale_of("loss_ratio", 0.02) == (0.01, "%")
    assert scale_of("hops", 7) == (1.0, "")


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (1.0, "1.0000"), (0.99998, "0.99998"), (0.999951, "0.99995"), (0.999338, "0.9993"),
        (0.5, "0.5000"), (0.0000213, "0.00002"), (-0.0372, "-0.0372"), (0.0, "0.0000"),
    ],
)  # fmt: skip
def test_an_index_is_never_shown_as_1_or_0_that_it_is_not(index, text):
    assert format_value("fairness_jain", index) == text


@given(st.text())
def test_a_quoted_text_is_one_printable_line_and_stays_what_it_was(text):
    assert quoted(text).isprintable()
    # JSON writes what cannot be shown beyond the first plane as two halves, which TOML has not.
    if all(ord(letter) < 0xD800 or letter.isprintable() for letter in text):
        assert tomllib.loads(f"a = {quoted(text)}")["a"] == text


@pytest.mark.parametrize(
    ("written", "bound", "shown"),
    [
        ("5ms", 0.1, "100 ms"), ("2h", 86400, "86400 s"), ("0s", 0.0001, "100 us"),
        ("1G", 2**29, "512 MiB"), ("9B", 65507.0, "65507 B"), ("1kbit", 1000, "1 kbit/s"),
        ("9%", 0.05, "5 %"), ("0s", 0, "0 s"), (3, 1, "1"), (3, 0.5, "0.5"), (None, 255, "255"),
        ("5ms", ["a"], ["a"]),
    ],
)  # fmt: skip
def test_a_bound_is_written_exactly_in_the_unit_of_what_it_bounds(written, bound, shown):
    assert write_like(written, bound) == shown


@pytest.fixture
def display():
    """Choose display units for one test."""
    yield units.display_in
    units.display_in("bits")


@pytest.mark.parametrize(
    ("chosen", "rate", "size"),
    [
        ("bits", "94.1 Mbit/s", "256 KiB"), ("bytes", "11.8 MB/s", "256 KiB"),
        ("si", "94.1 Mbit/s", "262 kB"), ("iec", "89.7 Mibit/s", "256 KiB"),
        ("bytes,si", "11.8 MB/s", "262 kB"), ("iec,bytes", "11.2 MiB/s", "256 KiB"),
    ],
)  # fmt: skip
def test_people_choose_the_units_of_what_they_read(display, chosen, rate, size):
    display(chosen)
    assert (format_value("sent_bps", 94.1e6), format_value("bdp_bytes", 2**18)) == (rate, size)
    assert format_value("sent_bps", 0) == ("0 B/s" if "bytes" in chosen else "0 bit/s")
    # What is written to be read by programs stays as it was.
    assert (unit_of("sent_bps"), write_like("1kbit", 1000)) == ("bit/s", "1 kbit/s")


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("", "is none of bits, bytes, si and iec"), ("Bytes", "is none of"),
        ("bits,bytes", "contradicts itself"), ("si,bytes,iec", "contradicts itself"),
    ],
)  # fmt: skip
def test_a_choice_of_units_that_is_none_is_rejected(chosen, said):
    with pytest.raises(ValueError, match=said):
        units.parse_display(chosen)


@given(
    st.sampled_from(["throughput_bps", "rtt_s", "window_bytes", "loss_ratio", "retransmits"]),
    st.floats(1, 1e14),
    st.none() | st.floats(0, 1e9),
)
def test_the_magnitude_of_what_was_formatted_is_its_value(name, value, half):
    shown = magnitude(format_mean(name, value, half))
    # To three digits; from two minutes on in whole seconds.
    assert shown == pytest.approx(value, rel=0.0051, abs=0.51 if name == "rtt_s" else 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5 min 20 s", 320.0), ("2 h 05 min", 7500.0), ("-5 min 20 s", -320.0), ("256K", 262144.0),
        ("64kB", 64e3), ("10Mbit", 1e7), ("+1.2 pp", 0.012), ("2 %", 0.02), ("unlimited", math.inf),
        ("at least 1.00 Gbit/s", 1e9), ("below 800 kbit/s", 8e5), ("1.5 MiB/s", 8 * 1.5 * 2**20),
        ("0.9998 ±0.0001", 0.9998), ("1,024", 1024.0), ("-", None), ("h1", None), ("", None),
        ("2026-11-22 00:45", None), ("3 apples", None),
    ],
)  # fmt: skip
def test_the_magnitude_of_a_text_is_in_base_units(text, value):
    found = magnitude(text)
    assert found == (value if value is None else pytest.approx(value))
