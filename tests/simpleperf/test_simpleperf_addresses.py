"""Whose an address is: mapped, scoped, in a network, of one site."""

import pytest

from benchctl_standalone.addresses import allows, origin_of, parse_network, same_host


def ipv6(host, scope=0, port=1):
    return (host, port, 0, scope)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("10.0.0.1", 1), ("10.0.0.1", 2), True),
        (("10.0.0.1", 1), ("10.0.0.2", 1), False),
        (ipv6("::ffff:10.0.0.1"), ("10.0.0.1", 1), True),
        (ipv6("::ffff:10.0.0.1"), ipv6("::ffff:10.0.0.2"), False),
        (ipv6("2001:db8::1"), ipv6("2001:db8:0::1"), True),
        (ipv6("2001:db8::1"), ipv6("2001:db8::2"), False),
        (ipv6("fe80::1", 2), ipv6("fe80::1", 2), True),
        (ipv6("fe80::1", 2), ipv6("fe80::1", 3), False),
        (ipv6("fe80::1%eth0", 2), ipv6("fe80::1", 2), True),
    ],
)
def test_two_addresses_are_of_one_host_where_they_differ_by_port_or_notation_only(one, other, same):
    assert same_host(one, other) is same


@pytest.mark.parametrize(
    ("network", "inside", "outside"),
    [
        ("10.0.0.0/8", ("10.200.0.1", 1), ("11.0.0.1", 1)),
        ("10.0.0.0/8", ipv6("::ffff:10.200.0.1"), ipv6("::ffff:11.0.0.1")),
        ("::ffff:10.0.0.0/104", ("10.200.0.1", 1), ("11.0.0.1", 1)),
        ("192.0.2.7", ("192.0.2.7", 1), ("192.0.2.8", 1)),
        ("2001:db8::/32", ipv6("2001:db8:1::1"), ipv6("2001:db9::1")),
        ("fe80::/10", ipv6("fe80::1", 3), ipv6("::1")),
        ("::/0", ipv6("2001:db8::1"), ipv6("::ffff:10.0.0.1")),
    ],
)
def test_a_network_holds_its_addresses_however_they_are_written(network, inside, outside):
    networks = [parse_network("198.51.100.0/24"), parse_network(network)]
    assert allows(networks, inside)
    assert not allows(networks, outside)


def test_without_networks_every_address_is_allowed():
    assert allows((), ("203.0.113.1", 1))


@pytest.mark.parametrize(
    "text", ["", "10.0.0.1/8", "10.0.0.0/33", "example.org", "fe80::1%eth0/64"]
)
def test_what_is_no_network_is_refused(text):
    with pytest.raises(ValueError, match=r"a network is 192\.0\.2\.0/24"):
        parse_network(text)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("10.0.0.1", 1), ("10.0.0.1", 2), True),
        (("10.0.0.1", 1), ("10.0.0.2", 1), False),
        (("10.0.0.1", 1), ipv6("::ffff:10.0.0.1"), True),
        (ipv6("2001:db8::1"), ipv6("2001:db8::ffff:1"), True),
        (ipv6("2001:db8:0:1::1"), ipv6("2001:db8:0:2::1"), False),
        (ipv6("fe80::1", 2), ipv6("fe80::2", 2), False),
    ],
)
def test_one_client_is_an_ipv4_address_or_a_64_of_ipv6(one, other, same):
    assert (origin_of(one) == origin_of(other)) is same
