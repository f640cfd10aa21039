"""The commands of the backend owamp, and what its parameters accept."""

import shlex

import pytest
from pydantic import ValidationError

from benchctl.api import Direction, Flow, Role, Tool
from benchctl_owamp import BACKEND
from benchctl_owping import BACKEND as OWPING

Parameters = BACKEND.parameters
SERVER = "serve -b 192.0.2.1 -p 861 --protocol owamp"
LIMITS = (
    "--max-rate unlimited --max-rate-per-client unlimited "
    "--max-packet-rate-per-client 1000000 --max-packets 200 "
    "--max-packets-per-client 200 --max-time 140"
)
KEYS = {"mode": "encrypted", "username": "jo", "key_file": "/etc/owamp/pfs"}


def flow(direction=Direction.BOTH, address="192.0.2.1", owns=False, **more):
    own = ("source_address", "source_device", "lasting", "allow")
    given = {name: more.pop(name) for name in own if name in more}
    return Flow(
        Parameters(**more), direction, address, 861, Tool("1.0.0"), owns_server=owns, **given
    )


def words(command):
    """Return the words after the tool, and those of the interpreter."""
    argv = [*command.argv]
    (tool,) = [word for word in argv if word.endswith("simpleowamp/__main__.py")]
    where = argv.index(tool)
    return shlex.join(argv[where + 1 :]), argv[1:where]


def client(*arguments, **more):
    return words(BACKEND.client(flow(*arguments, **more)))[0]


def server(**more):
    return words(BACKEND.server(flow(owns=True, **more)))[0]


def test_a_flow_of_defaults_is_owpings():
    assert client() == (
        "ping --json 192.0.2.1 -p 861 --protocol owamp --direction both -c 100 -i 0.1 "
        "--schedule exponential -s 0"
    )
    assert server() == f"{SERVER} {LIMITS}"


def test_every_parameter_reaches_the_command():
    assert client(
        Direction.SEND, "2001:db8::1", count=5, interval="100us", schedule="fixed", length="1400B",
        timeout="500ms", dscp="ef", ip_version=6, test_ports="8760-9960",
        source_address="2001:db8::7", source_device="eth0", **KEYS,
    ) == (
        "ping --json 2001:db8::1 -p 861 --protocol owamp --mode encrypted --user jo "
        "--key-file /etc/owamp/pfs --direction send -6 -b 2001:db8::7 --device eth0 "
        "-c 5 -i 0.0001 --schedule periodic -s 1352 -L 0.5 --dscp 46 "
        "--test-ports 8760-9960"
    )  # fmt: skip
    assert server(clock_offset="55ms", clock_drift="1ms/min") == (
        f"{SERVER} {LIMITS} --clock-offset 0.055s --clock-drift 1ms/min"
    )


def test_keys_need_a_library_that_only_site_packages_have():
    assert words(BACKEND.client(flow()))[1] == ["-I", "-S"]
    assert words(BACKEND.client(flow(**KEYS)))[1] == ["-I"]


def test_a_reflector_sends_back_what_it_gets():
    assert "--protocol stamp -c" in client(protocol="stamp")
    with pytest.raises(ValueError, match="stamp sends every packet back"):
        BACKEND.client(flow(Direction.SEND, protocol="stamp"))


def test_only_a_server_of_our_own_can_have_another_clock():
    assert "clock" not in client(owns=True, clock_offset="55ms")
    with pytest.raises(ValueError, match="benchctl starts itself"):
        BACKEND.client(flow(clock_offset="55ms"))


def test_a_lasting_server_keeps_its_limits_and_its_clients():
    lasting = server(lasting=True, allow=("192.0.2.0/24", "2001:db8::/32"))
    assert lasting == f"{SERVER} --allow 192.0.2.0/24 --allow 2001:db8::/32"


@pytest.mark.parametrize(
    "values",
    [
        {"interval": "0s"}, {"interval": "10us"}, {"length": "13B"}, {"length": "65015B"},
        {"count": 0}, {"count": 1_000_001}, {"duration": "0s"}, {"timeout": "0s"}, {"dscp": 64},
        {"ip_version": 5}, {"schedule": "poisson"}, {"protocol": "icmp"}, {"user": "jo"},
        {"mode": "encrypted"}, {"mode": "authenticated", "username": "jo"}, {"username": "jo"},
        {"mode": "authenticated", "key_file": "/k"}, {"protocol": "twamp", "length": "40B"},
        {"protocol": "twamp-light", **KEYS},
        {**KEYS, "key_file": "pfs"}, {**KEYS, "protocol": "stamp"}, {**KEYS, "length": "47B"},
        {"protocol": "stamp", "length": "43B"}, {"clock_drift": "1ms"}, {"clock_drift": "1/min"},
        {"duration": "24h", "interval": "10ms"}, {"clock_drift": 1e-5},
    ],
)  # fmt: skip
def test_what_the_tool_cannot_do_is_refused(values):
    with pytest.raises(ValidationError):
        Parameters(**values)


def test_the_size_of_a_packet_is_its_protocols_and_the_padding():
    sizes = {
        (): 14, ("length",): 1400, ("protocol",): 44, ("keys",): 48, ("protocol", "length"): 1400,
    }  # fmt: skip
    values = {"length": {"length": "1400B"}, "protocol": {"protocol": "stamp"}, "keys": KEYS}
    for names, size in sizes.items():
        params = Parameters(count=10, **{k: v for name in names for k, v in values[name].items()})
        assert params.payload_bytes == size
        assert BACKEND.traffic_bytes(params) == 10 * size
        assert BACKEND.demand(params).payload_bytes == size
        assert BACKEND.demand(params).rate_bps == 0


def test_a_drift_is_a_ratio():
    assert Parameters(clock_drift="1ms/min").clock_drift == pytest.approx(1e-3 / 60)
    assert Parameters(clock_drift="20us/s").clock_drift == pytest.approx(20e-6)


def test_a_profile_of_one_tool_is_one_of_the_other():
    """`--set backend=owping` runs what was written for owamp, but for its own experiments."""
    own = {"protocol", "clock_offset", "clock_drift"}
    assert Parameters.model_fields.keys() - OWPING.parameters.model_fields.keys() == own
    for name in Parameters.model_fields.keys() - own:
        fields = [one.model_fields[name] for one in (Parameters, OWPING.parameters)]
        assert fields[0].default == fields[1].default
    here, there = (one.capabilities for one in (BACKEND, OWPING))
    assert (here.directions, here.headline) == (there.directions, there.headline)


def test_the_probe_reads_the_version():
    for role in Role:
        assert BACKEND.probe(role).argv[-1] == "--version"
    assert BACKEND.read_probe(Role.CLIENT, 0, "simpleowamp 1.0.0\n") == Tool("1.0.0")
    with pytest.raises(ValueError, match="ended with 1"):
        BACKEND.read_probe(Role.CLIENT, 1, "Traceback")
