"""What a tool cannot do is refused when it is planned, at the key that the reason names."""

import sys
from dataclasses import replace

import pytest
from engine.fakes import FakeBackend, FakeParameters, ProbedBackend

from benchctl.api import Direction
from benchctl.backends import Registry
from benchctl.engine.prepare.planning import planned
from benchctl.errors import MissingError, ProfileError
from benchctl.plugins import Candidate

HEAD = '[flows.main]\nbackend = "picky"\n'


class PickyParameters(FakeParameters):
    level: int = 0
    congestion_control: str | None = None
    password_file: str | None = None


class PickyBackend(FakeBackend):
    """A fake whose tool cannot do everything that its model accepts."""

    name = "picky"
    parameters = PickyParameters

    def client(self, flow):
        if flow.params.label == "bug":
            raise KeyError("label")
        if flow.params.level > 1:
            raise ValueError("from 2 to 9 no level works here")
        if flow.params.level == 1 and flow.direction is Direction.RECEIVE:
            raise ValueError("version 1 here cannot do both at once")
        if flow.direction is Direction.RECEIVE and not flow.owns_server:
            raise ValueError("a server of others cannot send: direction is send")
        secret = flow.params.password_file
        return replace(super().client(flow), secrets={"WORD": secret} if secret else {})

    def server(self, flow):
        if flow.params.label == "lame":
            raise ValueError("the server has no label lame")
        return super().server(flow)


class AbsentBackend(ProbedBackend):
    """A fake whose program is not here, and which would refuse everything."""

    name = "absent"

    def read_probe(self, role, exit_code, output):
        raise ValueError("it is too old")

    def client(self, flow):
        raise ValueError("nothing works")


@pytest.fixture
def plan(monkeypatch, tmp_path):
    kinds = PickyBackend, AbsentBackend
    registry = Registry({kind.name: Candidate(kind.name, "", kind) for kind in kinds})
    monkeypatch.setattr("benchctl.engine.prepare.planning.installed", lambda: registry)
    profile = tmp_path / "p.toml"

    def make(text, *settings):
        profile.write_text(text)
        return planned(str(profile), settings, None, None, yes=False)

    return make


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (
            'label = "x"\nlevel = 2\n', 4,
            "flows.main.level: picky: from 2 to 9 no level works here",
        ),
        (
            'from = "local"\nto = "local"\n[defaults]\nlevel = 2\n', 6,
            "defaults.level: picky: from 2 to 9 no level works here",
        ),
        (
            "[axes]\nlevel = [0, 1, 2]\n", 4,
            "axes.level[2]: picky: from 2 to 9 no level works here",
        ),
        (
            'direction = "receive"\nto = "far"\n[servers.far]\nhost = "192.0.2.1"\n', 3,
            "flows.main.direction: picky: a server of others cannot send: direction is send",
        ),
        ('label = "lame"\n', 3, "flows.main.label: picky: the server has no label lame"),
        (
            '[axes]\nlevel = [0, 1]\ndirection = ["send", "receive"]\n', 1,
            "flows.main: picky: version 1 here cannot do both at once "
            '(at level=1, direction="receive")',
        ),
    ],
)  # fmt: skip
def test_a_flow_that_its_tool_refuses_is_refused_with_its_line(plan, text, line, told):
    with pytest.raises(ProfileError) as error:
        plan(HEAD + text)
    assert error.value.message.partition("p.toml:")[2] == f"{line}: {told}"


def test_a_password_that_is_not_there_is_missed_before_anything_runs(plan):
    with pytest.raises(ProfileError) as error:
        plan(HEAD + 'password_file = "/nowhere"\n')
    assert error.value.message.endswith(
        "3: flows.main.password_file: picky: password_file: /nowhere cannot be read: No such file"
        " or directory"
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other kernels have no such list")
def test_a_congestion_control_that_the_kernel_lacks_is_refused(plan):
    plan(HEAD + 'congestion_control = "reno"\n')
    with pytest.raises(ProfileError) as error:
        plan(HEAD + '[axes]\ncongestion_control = ["reno", "bbr9"]\n')
    assert "axes.congestion_control[1]: picky: congestion_control: this kernel has no bbr9; it" in (
        error.value.message
    )
    assert "reno" in error.value.message


def test_a_value_of_the_command_line_is_the_one_to_blame(plan):
    with pytest.raises(ProfileError) as error:
        plan(HEAD, "level=3")
    assert error.value.message == "--set level: picky: from 2 to 9 no level works here"


def test_a_tool_that_is_missing_is_not_asked(plan):
    made = plan('[flows.main]\nbackend = "absent"\n')
    assert "it is too old" in made.missing.message


def test_a_plugin_that_fails_is_named_and_no_traceback(plan):
    with pytest.raises(MissingError) as error:
        plan(HEAD + 'label = "bug"\n')
    assert error.value.message == (
        "flow main: backend \"picky\" failed to build a command: KeyError: 'label'"
    )
    assert error.value.hint == "report it to the author of the plugin"
