"""What only profile and topology together can get wrong is told before anything runs."""

import pytest

from benchctl.engine.planning import planned
from benchctl.errors import ProfileError

LAB = """
local = "phone"
[hosts]
phone = {}
web = { aliases = ["web.example.net"] }
spare = {}
[routers]
r = {}
[links]
wifi = { between = ["phone:wireless", "r"], rate = "8Mbit" }
r-web = { between = ["r", "web"] }
r-spare = { between = ["r", "spare"] }
cell = { between = ["phone:mobile", "spare"] }
"""
PROFILE = """
[lab]
topology = "lab.toml"
[servers.web]
host = "web.example.net"
[flows.main]
backend = "simpleperf"
"""


@pytest.fixture
def plan(tmp_path):
    def make(text):
        (tmp_path / "lab.toml").write_text(LAB)
        profile = tmp_path / "p.toml"
        profile.write_text(PROFILE + text)
        return planned(str(profile), None, None, None, yes=False)

    return make


def test_a_server_of_the_profile_is_a_host_of_the_lab_by_its_alias(plan):
    [flow] = plan('to = "web"\n').plan.routes
    assert (flow.source, flow.to, flow.interface) == ("local", "web", None)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('from = "away"\nto = "web"\n', 8, 'flows.main.from: no host "away"'),
        (
            'to = "paris"\n[servers.paris]\nhost = "paris.example.net"\n', 10,
            'servers.paris.host: the lab has no host "paris.example.net", and no way out',
        ),
        (
            'to = "web"\ninterface = "mobile"\n', 9,
            "flows.main.interface: there is no path from phone to web by mobile",
        ),
        (
            'to = "web"\n[[lab.changes]]\nat = "1s"\nlink = "lan"\nrate = "1Mbit"\n', 11,
            'lab.changes[0].link: no link "lan"',
        ),
    ],
)  # fmt: skip
def test_what_the_lab_does_not_have_is_told_with_its_line(plan, text, line, told):
    with pytest.raises(ProfileError) as error:
        plan(text)
    assert error.value.message.endswith(f"p.toml:{line}: {told}")
    assert error.value.hint or "path" in told
