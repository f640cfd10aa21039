"""What the owner of a host allows: each limit alone, and the file that says so."""

from datetime import datetime
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchctl.api import Direction, Role
from benchctl.backends import installed
from benchctl.engine.trial.ends import EndSpec
from benchctl.errors import ProfileError
from benchctl.fleet.limits import (
    HostLoad,
    Hours,
    Limits,
    amount_of,
    names_file,
    parse_hours,
    read_limits,
    refusal,
)

NOON = datetime(2026, 11, 28, 12)
FLEET = ("9.9.9.9", "10.1.0.1")
IDLE = HostLoad()
PUBLIC = Limits(networks=("1.1.1.0/24",))


def judged(
    limits=PUBLIC, backend="simpleperf", role="client", target="1.1.1.1", load=IDLE, now=NOON,
    link_bps=1e9, **parameters,
):  # fmt: skip
    plugin = installed().load(backend)
    given = {"duration": "10s", "rate": "100Mbit", **parameters}
    given = {name: value for name, value in given.items() if value is not None}
    spec = EndSpec(
        backend, "1", "s", Role(role), given, Direction.SEND, target, 5201, 10.0, 20.0
    )  # fmt: skip
    return refusal(
        limits, spec, plugin, plugin.parameters.model_validate(given), [target], FLEET, load,
        link_bps, now,
    )  # fmt: skip


def test_what_is_within_the_limits_is_allowed():
    assert judged() == judged(target="9.9.9.9") == ""


def limits(**given):
    return Limits(networks=PUBLIC.networks, **given)


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ({"limits": limits(backends=frozenset(["ping"]))}, "does not allow the backend simpleperf"),
        ({"limits": limits(hours=(Hours(0, 60),))}, "from 00:00-01:00 only"),
        ({"limits": limits(rate_bps=99e6)}, "allows 99.0 Mbit/s; the flow takes up to 100 Mbit/s"),
        (
            {"limits": limits(rate_bps=150e6), "load": HostLoad(60e6)},
            "allows 150 Mbit/s, 60.0 Mbit/s of them now",
        ),
        ({"limits": limits(rate_bps=0.9e9), "rate": None}, "the flow takes up to 1.00 Gbit/s"),
        ({"limits": limits(trial_bytes=124e6)}, "a trial; its flows take up to"),
        (
            {"limits": limits(day_bytes=200e6), "load": HostLoad(0.0, 100e6)},
            "that its owner allows a day",
        ),
        ({"backend": "iperf3", "role": "server"}, "would admit everybody"),
        ({"backend": "iperf3", "options": ["--fq-rate", "1M"]}, "does not allow options"),
        ({"backend": "iperf3", "public_key": "/etc/x", "username": "a", "password_file": "/b"},
         "name files: public_key, password_file"),
    ],
)  # fmt: skip
def test_each_limit_refuses_in_words(case, why):
    assert why in judged(**case)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("127.0.0.1", "is loopback, link-local or private"),
        ("::1", "is loopback, link-local or private"),
        ("::ffff:127.0.0.1", "is loopback, link-local or private"),
        ("169.254.169.254", "is loopback, link-local or private"),
        ("fe80::1%eth0", "is loopback, link-local or private"),
        ("10.1.0.1", "is loopback, link-local or private"),  # of the fleet, but private
        ("224.0.0.1", "is no address of one host"),
        ("8.8.8.8", "is no host of the fleet"),
    ],
)
def test_targets_are_the_fleets_own_hosts_unless_a_network_is_listed(target, why):
    assert why in judged(target=target)
    network = f"{ip_address(target.partition('%')[0])}"
    mapped = getattr(ip_address(network), "ipv4_mapped", None)
    assert judged(Limits(networks=(f"{mapped or network}",)), target=target) == ""


def test_one_bad_address_of_a_name_is_enough():
    plugin = installed().load("ping")
    spec = EndSpec("ping", "1", "s", Role.CLIENT, {}, Direction.ROUND_TRIP, "x", None, 1.0, 2.0)
    params = plugin.parameters.model_validate({})
    for targets in ([], ["1.1.1.1", "127.0.0.1"]):
        assert refusal(PUBLIC, spec, plugin, params, targets, FLEET, HostLoad(), 1e9, NOON)


def test_a_flow_without_a_rate_counts_as_the_links_speed():
    plugin = installed().load("simpleperf")
    amount = amount_of(plugin, plugin.parameters.model_validate({"duration": "8s"}), 1e9)
    assert amount == (1e9, 1e9)


@given(st.integers(0, 1439), st.integers(0, 1439), st.integers(0, 1439))
def test_hours_over_midnight_are_those_that_the_others_are_not(start, until, minute):
    if start != until:
        assert Hours(start, until).has(minute) != Hours(until, start).has(minute)


@given(st.text(max_size=12))
def test_hours_are_hours_or_refused(text):
    try:
        hours = parse_hours(text)
    except ValueError:
        return
    assert parse_hours(str(hours)) == hours


@pytest.mark.parametrize(
    ("name", "value", "is_file"),
    [("key_file", "k", True), ("anything", "../k", True), ("protocol", "tcp", False),
     ("rate", 1e6, False), ("key_file", None, False)],
)  # fmt: skip
def test_parameters_that_name_files_are_known(name, value, is_file):
    assert names_file(name, value) is is_file


def test_the_file_of_an_owner_is_read(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(
        'backends = ["ping"]\nnetworks = ["192.0.2.0/24"]\nrate = "1Gbit"\ntrial_bytes = "1GB"\n'
        'day_bytes = "10GB"\nhours = ["22:00-06:00"]\nallow = ["options"]\n'
    )
    assert read_limits(path) == Limits(
        frozenset(["ping"]), ("192.0.2.0/24",), 1e9, 1e9, 1e10, (Hours(1320, 360),),
        frozenset(["options"]),
    )  # fmt: skip
    assert read_limits(tmp_path / "none") == Limits()


@pytest.mark.parametrize(
    "text",
    ['rte = "1Gbit"', "rate = 5", 'networks = ["x"]', 'allow = ["sudo"]', 'hours = ["9-17"]',
     'backends = "ping"'],
)  # fmt: skip
def test_a_fault_in_the_file_has_its_line(tmp_path, text):
    path = tmp_path / "agent.toml"
    path.write_text(f"\n{text}\n")
    with pytest.raises(ProfileError, match=r"agent.toml:2: "):
        read_limits(path)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ({"role": Role.SERVER, "address": "--one-off"}, "is no address of this host"),
        ({"source_address": "-x"}, "is no address of this host"),
        ({"source_device": "--flag"}, "is no device of this host"),
        ({"source_address": "fe80::1%-x"}, "is no device of this host"),
    ],
)
def test_no_place_of_a_plan_becomes_a_word_of_a_command(place, why):
    plugin = installed().load("simpleperf")
    spec = EndSpec(
        "simpleperf", "1", "s", Role.CLIENT, {}, Direction.SEND, "1.1.1.1", 5201, 1.0, 2.0
    )
    params = plugin.parameters.model_validate({"duration": "1s"})
    targets = ["1.1.1.1"]
    assert why in refusal(
        PUBLIC, replace(spec, **place), plugin, params, targets, FLEET, IDLE, 1e9, NOON
    )
