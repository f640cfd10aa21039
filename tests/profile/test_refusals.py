"""Errors of wrong profiles: each message in full, with file, line, key and hint."""

import pytest

GOOD = """\
[servers]
paris = {host = "paris.example", port = "9200-9240", capacity = "10Gbit"}

[interfaces]
wired = {device = "eth0"}

[defaults]
duration = "5s"

[flows.main]
backend = "stream"
to = "paris"

[flows.beside]
backend = "echo"
count = 10

[axes]
streams = [1, 2, 4]
server = {sets = "main.to", values = ["paris"]}

[run]
repeats = 3
"""
"""Lines are counted on from here: 23 of them, and what a test adds begins at 24."""

# Each case: what is replaced, by what; the message; the hint.
WRONG = {
    # --- unknown keys, at every level
    "a table": ("[run]", "[runs]", "22: runs: unknown key", 'did you mean "run"?'),
    "a key of a server": (
        'host = "paris.example"', 'hots = "x"',
        "2: servers.paris.hots: unknown key", 'did you mean "host"?',
    ),
    "a key of an interface": (
        'device = "eth0"', 'device = "eth0", gateway = "x"',
        "5: interfaces.wired.gateway: unknown key", "known: device, address, note",
    ),
    "a key of run": (
        "repeats = 3", "repeat = 3", "23: run.repeat: unknown key", 'did you mean "repeats"?',
    ),
    "a key of an axis": (
        "values = [", "value = [", "20: axes.server.value: unknown key", 'did you mean "values"?',
    ),
    "a dotted axis without quotes": (
        "streams = [1, 2, 4]", "main.streams = [1, 2, 4]",
        "19: axes.main.streams: unknown key",
        'put a name with dots in quotes, as in "main.window" = […]',
    ),
    "a parameter of a flow": (
        'to = "paris"', 'widnow = "1M"',
        "12: flows.main.widnow: stream has no such parameter", 'did you mean "window"?',
    ),
    "a parameter in defaults": (
        'duration = "5s"', 'duratoin = "5s"',
        "8: defaults.duratoin: no flow takes this parameter", 'did you mean "duration"?',
    ),
    "backend in defaults": (
        'duration = "5s"', 'backend = "stream"',
        "8: defaults.backend: set the backend in each flow", "",
    ),
    # --- hosts that are no names and no addresses, of servers, hosts and interfaces
    "a host with its port": (
        '"paris.example"', '"paris.example:5201"',
        '2: servers.paris.host: "paris.example:5201" is neither a host name nor an IP address; '
        "put the port in its own key, and write an IPv6 address without brackets", "",
    ),
    "a URL for a host": (
        '"paris.example"', '"https://paris.example/"',
        '2: servers.paris.host: "https://paris.example/" is neither a host name nor an IP address; '
        "leave out the scheme and the path", "",
    ),
    "a source address that is a name": (
        'device = "eth0"', 'address = "localhost"',
        '5: interfaces.wired.address: "localhost" is not an IP address', "",
    ),
    "an address of a host that is none": (
        "[defaults]", '[hosts]\nfar = {address = "300.1.1.1"}\n[defaults]',
        '8: hosts.far.address: "300.1.1.1" is neither a host name nor an IP address', "",
    ),
    "a deadline under the duration": (
        "repeats = 3", 'deadline = "3s"',
        "23: run.deadline: 3.00 s is shorter than a trial, which takes 10.0 s",
        "leave it out to get 25.0 s",
    ),
    # --- wrong types and units
    "a number for a text": (
        'device = "eth0"', "device = 0", "5: interfaces.wired.device: must be a string, in quotes",
        "",
    ),
    "a text for a number": (
        "repeats = 3", 'repeats = "3"', "23: run.repeats: must be a whole number", "",
    ),
    "true for a number": (
        "repeats = 3", "repeats = true", "23: run.repeats: must be a whole number", "",
    ),
    "a list for a table": (
        'paris = {host = "paris.example", port = "9200-9240", capacity = "10Gbit"}',
        "paris = [1]", "2: servers.paris: must be a table", "",
    ),
    "a text for an axis": (
        "streams = [1, 2, 4]", 'streams = "1,2,4"',
        '19: axes.streams: must be a list of values, or a table with "values" or "mesh"', "",
    ),
    "a date as an axis value": (
        "streams = [1, 2, 4]", "streams = [1, 2026-11-21]",
        "19: axes.streams[1]: must be a string, a number, true or false", "",
    ),
    "a list as an axis value": (
        "streams = [1, 2, 4]", "streams = [1, [2]]",
        "19: axes.streams[1]: must be a string, a number, true or false", "",
    ),
    "a labelled value that sets a date": (
        "streams = [1, 2, 4]", 'load = [{label = "x", "main.streams" = 2026-11-21}]',
        '19: axes.load[0]: "main.streams" must be a string, a number, true or false', "",
    ),
    "no unit": (
        'duration = "5s"', "duration = 5",
        '8: defaults.duration: 5 has no unit; write a duration as in "10s" or "250ms"', "",
    ),
    "a unit of another kind": (
        'duration = "5s"', 'duration = "5M"',
        '8: defaults.duration: "5M": unknown unit "M"; a duration is in ns, us, ms, s, min, h, d',
        "",
    ),
    "an ambiguous duration": (
        'duration = "5s"', 'duration = "5m"',
        '8: defaults.duration: "5m" could be minutes or milliseconds; write "min" or "ms"', "",
    ),
    "an ambiguous rate": (
        'capacity = "10Gbit"', 'capacity = "10Gbps"',
        '2: servers.paris.capacity: "10Gbps" could be bits or bytes per second; '
        'write "Mbit", "Gbit", …', "",
    ),
    "an ambiguous size": (
        'to = "paris"', 'window = "64KB"',
        '12: flows.main.window: "64KB" could be 1000 or 1024 bytes each; write "kB" or "KiB"', "",
    ),
    "a parameter out of its bounds": (
        'duration = "5s"', 'duration = "0s"', "8: defaults.duration: must be more than 0 s", "",
    ),
    "a parameter out of the tool's own bounds": (
        'to = "paris"', 'congestion_control = "x"',
        "12: flows.main.congestion_control: string should have at least 2 characters", "",
    ),
    "a parameter that is none of the choices": (
        'to = "paris"', 'protocol = "tpc"',
        '12: flows.main.protocol: "tpc" is not one of tcp, udp', 'did you mean "tcp"?',
    ),
    "a parameter that is none of mixed choices": (
        'to = "paris"', "ip_version = 5",
        "12: flows.main.ip_version: 5 is not one of auto, 4, 6", "",
    ),
    "an item of a list": (
        'to = "paris"', 'tags = [1, "x"]',
        "12: flows.main.tags[1]: must be a whole number", "",
    ),
    "a missing parameter": (
        "count = 10\n", "", "14: flows.beside.count: is missing", "",
    ),
    "an empty text": (
        'device = "eth0"', 'device = ""', "5: interfaces.wired.device: must not be empty", "",
    ),
    "a name that cannot be typed": (
        "[servers]\nparis", '[servers]\n"a b" = {host = "x"}\nparis',
        '2: servers."a b": names consist of letters, digits, dots, hyphens and underscores', "",
    ),
    "a flow called lab": (
        "[flows.beside]", "[flows.lab]",
        '14: flows.lab: the name of a flow must not contain a dot or be "lab"', "",
    ),
    # --- places
    "a port out of range": (
        '"9200-9240"', "70000", "2: servers.paris.port: port 70000 is not between 1 and 65535", "",
    ),
    "port zero": (
        '"9200-9240"', "0", "2: servers.paris.port: port 0 is not between 1 and 65535", "",
    ),
    "a port range out of range": (
        '"9200-9240"', '"65000-65536"',
        "2: servers.paris.port: port 65536 is not between 1 and 65535", "",
    ),
    "a port range that runs backwards": (
        '"9200-9240"', '"9240-9200"', "2: servers.paris.port: the range 9240-9200 is reversed",
        "",
    ),
    "no port at all": (
        '"9200-9240"', '"ssh"',
        '2: servers.paris.port: write a port as 5201, a range of ports as "5201-5210"', "",
    ),
    "an interface that is nothing": (
        'device = "eth0"', 'note = "x"',
        "5: interfaces.wired: give a device, an address, or both", "",
    ),
    "an interface that is not declared": (
        'to = "paris"', 'interface = "wierd"',
        '12: flows.main.interface: no interface "wierd"', 'did you mean "wired"?',
    ),
    "a server that is not declared": (
        "count = 10", 'count = 10\nto = "pariss"',
        '17: flows.beside.to: no host or server "pariss"', 'did you mean "paris"?',
    ),
    "the address of a server in place of its name": (
        "count = 10", 'count = 10\nto = "192.0.2.9"',
        '17: flows.beside.to: no host or server "192.0.2.9"',
        'declare it: [servers.NAME] with host = "192.0.2.9", and to = "NAME"',
    ),
    "a host that is not declared": (
        'to = "paris"', 'from = "h1"', '12: flows.main.from: no host "h1"', "available: local",
    ),
    "a server called local": (
        "[servers]\nparis", '[servers]\nlocal = {host = "x"}\nparis',
        "2: servers.local: a host has this name too", "rename one of them",
    ),
    # --- backends
    "a backend that is not there": (
        '"stream"', '"steam"', '11: flows.main.backend: no backend "steam"',
        'did you mean "stream"?',
    ),
    "a flow without a backend": (
        'backend = "stream"\n', "", "10: flows.main.backend: is missing", "",
    ),
    "a direction that does not exist": (
        'to = "paris"', 'direction = "sent"',
        '12: flows.main.direction: "sent" is not one of send, receive, both, round-trip',
        'did you mean "send"?',
    ),
    "a direction that the backend lacks": (
        'to = "paris"', 'direction = "round-trip"',
        '12: flows.main.direction: stream cannot measure in direction "round-trip"',
        "supported: send, receive, both",
    ),
    # --- axes
    "an axis over nothing": (
        "streams = [1, 2, 4]", "steams = [1, 2, 4]", '19: axes.steams[0]: no flow takes "steams"',
        'did you mean "streams"?',
    ),
    "an axis over a parameter that the flow lacks": (
        "streams = [1, 2, 4]", '"beside.streams" = [1, 2, 4]',
        '19: axes."beside.streams"[0]: flow "beside" has no parameter "streams"',
        "known: backend, capture, count, delay, direction, duration, from, interface, interval, to",
    ),
    "an axis without values": (
        "streams = [1, 2, 4]", "streams = []", "19: axes.streams: must not be empty", "",
    ),
    "an axis with one value twice": (
        "streams = [1, 2, 4]", "streams = [1,\n 2,\n 1]",
        "21: axes.streams[2]: 1 appears twice in this axis", "",
    ),
    "an axis that sets nothing": (
        'sets = "main.to"', "sets = []", "20: axes.server.sets: must not be empty", "",
    ),
    "an axis value that is wrong": (
        "streams = [1, 2, 4]", "streams = [1,\n 2,\n 0]", "21: axes.streams[2]: must be at least 1",
        "",
    ),
    "an axis value that is no server": (
        'values = ["paris"]', 'values = ["paris", "Tashkent"]',
        '20: axes.server.values[1]: no host or server "Tashkent"', "available: local, paris",
    ),
    "an axis of interfaces that is not declared": (
        "streams = [1, 2, 4]", 'interface = ["wired", "wireless"]',
        '19: axes.interface[1]: no interface "wireless"', 'did you mean "wired"?',
    ),
    "an axis of backends that are not there": (
        "streams = [1, 2, 4]", 'tool = {sets = "main.backend", values = ["stream", "iperf"]}',
        '19: axes.tool.values[1]: no backend "iperf"', "available: broken, echo, stream",
    ),
    "a labelled value without a label": (
        "streams = [1, 2, 4]", "load = [{streams = 1}]",
        '19: axes.load[0]: a value given as a table needs a "label"', "",
    ),
    "a labelled value with a wrong setting": (
        "streams = [1, 2, 4]", 'load = [{label = "x", main.streams = 1, main.omit = "1"}]',
        '19: axes.load[0].main.omit: "1": no unit; a duration is in ns, us, ms, s, min, h, d',
        "",
    ),
    "a delay on an axis": (
        "streams = [1, 2, 4]", 'delay = ["1s", "2"]',
        '19: axes.delay[1]: "2": no unit; a duration is in ns, us, ms, s, min, h, d',
        "",
    ),
    "parameters that contradict each other at one point": (
        "streams = [1, 2, 4]", 'protocol = ["tcp", "udp"]\nwindow = ["1M"]',
        '10: flows.main: udp has no window (at protocol="udp", window="1M", server="paris")', "",
    ),
    "two axes that set the same": (
        "streams = [1, 2, 4]", 'streams = [1, 2]\nload = [{label = "x", streams = 8}]',
        '20: axes.load[0].streams: axis "streams" sets main.streams too',
        "remove one of them",
    ),
    "a choice of flows that are not there": (
        "streams = [1, 2, 4]", 'flows = ["main", "besides"]',
        '19: axes.flows[1]: no flow "besides"', 'did you mean "beside"?',
    ),
    "a choice of no flow": (
        "streams = [1, 2, 4]", 'what = [{label = "none", flows = []}]',
        "19: axes.what[0].flows: selects no flow", "",
    ),
    "a setting of a lab that is not there": (
        "streams = [1, 2, 4]", '"lab.links.core.loss" = ["1%"]',
        '19: axes."lab.links.core.loss"[0]: "lab.links.core.loss" needs a [lab]', "",
    ),
    "no flow": (
        GOOD, 'title = "x"\n', "1: flows: is missing", "",
    ),
}  # fmt: skip

ADDED = {
    "zip: axes of different length": (
        "[[zip]]\nwindow = ['1M', '2M']\nrate = ['1Mbit']",
        "24: zip[0]: the axes of a [[zip]] need equally many values: window has 2, rate has 1", "",
    ),
    "zip: an axis twice": (
        "[[zip]]\nstreams = [1]", "25: zip[0].streams: this axis is defined twice", "",
    ),
    "zip: empty": ("[[zip]]", "24: zip[0]: must not be empty", ""),
    "zip: a wrong value": (
        "[[zip]]\nwindow = ['1M', '2m']",
        '25: zip[0].window[1]: "2m": unknown unit "m"; a size is in B, kB, MB, GB, TB, K, M, G, '
        "KiB, MiB, GiB, TiB", "",
    ),
    "exclude: an unknown axis": (
        "[[exclude]]\nsteams = 4", "25: exclude[0].steams: no axis has this name",
        'did you mean "streams"?',
    ),
    "exclude: an unknown value": (
        "[[exclude]]\nstreams = 3", "25: exclude[0].streams: 3 is not a value of this axis",
        "values are: 1, 2, 4",
    ),
    "exclude: an unknown value in a list": (
        "[[exclude]]\nserver = [\n'paris',\n'pariss']",
        '27: exclude[0].server[1]: "pariss" is not a value of this axis', 'did you mean "paris"?',
    ),
    "exclude: nothing": ("[[exclude]]", "24: exclude[0]: must not be empty", ""),
    "exclude: no values": (
        "[[exclude]]\nstreams = []", "25: exclude[0].streams: must not be empty", "",
    ),
    "exclude: everything": (
        "[[exclude]]\nstreams = [1, 2, 4]",
        "24: exclude: no point of the matrix is left to measure", "",
    ),
    "include: an unknown axis": (
        "[[include]]\nsteams = 4", "25: include[0].steams: no axis has this name",
        'did you mean "streams"?',
    ),
    "include: a point that is there": (
        "[[include]]\nstreams = 4\nserver = 'paris'",
        "24: include[0]: this point is already in the matrix", "",
    ),
    "include: the same point twice": (
        "[[include]]\nstreams = 8\n[[include]]\nstreams = 8",
        "26: include[1]: this point is already in the matrix", "",
    ),
    "include: a wrong value": (
        "[[include]]\nstreams = 1000", "25: include[0].streams: must be at most 128", "",
    ),
    "include: nothing": ("[[include]]", "24: include[0]: must not be empty", ""),
    "lab: a change of nothing": (
        "[lab]\ntopology = 'x.toml'\n[[lab.changes]]\nat = '1s'\nlink = 'core'",
        "26: lab.changes[0]: give a rate, delay, jitter or loss", "",
    ),
    "lab: an unknown emulator": (
        "[lab]\ntopology = 'x.toml'\nemulator = 'netem'",
        '26: lab.emulator: "netem" is not one of auto, kernel, user', "",
    ),
    "not TOML": ("streams = [1,", "24: invalid TOML: invalid value", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_profile_is_told_so(refusal, case):
    old, new, message, hint = WRONG[case]
    assert GOOD.count(old) == 1
    error = refusal(GOOD.replace(old, new))
    assert error.message == f"p.toml:{message}"
    assert error.hint == hint
    assert error.kind == ("MissingError" if "no backend" in message else "ProfileError")


@pytest.mark.parametrize("case", ADDED)
def test_a_wrong_addition_is_told_so(refusal, case):
    added, message, hint = ADDED[case]
    error = refusal(GOOD + added)
    assert error.message == f"p.toml:{message}"
    assert error.hint == hint
    assert error.kind == "ProfileError"


def test_the_profile_that_the_cases_start_from_is_good(plan):
    assert len(plan(GOOD)) == 9


@pytest.mark.parametrize(
    "host",
    [
        "a b", "a\\nb", "a\\u0000b", "*", "-h", "--help", "a..b", ".", "300.1.1.1", "1.2.3",
        "127.1", "0x7f000001", "1", "[::1]", "::1::", "fe80::1%a b", "10.0.0.1 ",
        "b\u00fccher.example", "x" * 64, "x." * 127 + "x",
    ],
)  # fmt: skip
def test_what_is_no_host_is_refused_with_its_line(refusal, host):
    error = refusal(GOOD.replace("paris.example", host))
    assert error.message.startswith("p.toml:2: servers.paris.host: ")
    assert "neither a host name nor an IP address" in error.message


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "paris.example.", "a_b", "h1", "xn--bcher-kva.example", "10.0.0.1", "::1",
        "fe80::1%eth0", "3com.example", "x" * 63,
    ],
)  # fmt: skip
def test_a_name_or_an_address_is_a_host(plan, host):
    plan(GOOD.replace("paris.example", host))
