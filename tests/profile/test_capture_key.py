"""Which packets of a flow a profile asks for."""

import pytest

from benchctl.backends import installed
from benchctl.errors import ProfileError
from benchctl.plan.plan import make_plan
from benchctl.profile.load import load_profile
from benchctl.run.planned import PacketCapture

DEFAULT = PacketCapture(("from", "to"), 96, 200 << 20)
FLOW = '[flows.main]\nbackend = "simpleperf"\n'
ELSEWHERE = 'to = "paris"\n[servers.paris]\nhost = "192.0.2.1"\n'


@pytest.fixture
def captures(tmp_path):
    def captures(text, *settings):
        (tmp_path / "p.toml").write_text(FLOW + text)
        plan = make_plan(load_profile(str(tmp_path / "p.toml"), settings), installed())
        return [flow.capture for trial in plan for flow in trial.flows]

    return captures


@pytest.mark.parametrize(
    ("text", "capture"),
    [
        ("", None),
        ("capture = false\n", None),
        ("capture = true\n", DEFAULT),
        (
            'capture = { snaplen = "128B", max = "1MB" }\n',
            PacketCapture(("from", "to"), 128, 1_000_000),
        ),
        ('capture = { hosts = ["to"] }\n', PacketCapture(("to",), 96, 200 << 20)),
        ("[defaults]\ncapture = true\n", DEFAULT),
        (f"capture = true\n{ELSEWHERE}", PacketCapture(("from",), 96, 200 << 20)),
    ],
)
def test_a_flow_has_the_capture_that_is_written(captures, text, capture):
    assert captures(text) == [capture]


def test_a_capture_is_an_axis_and_a_setting(captures):
    assert captures("[axes]\ncapture = [false, true]\n") == [None, DEFAULT]
    assert captures("capture = true\n", "capture=false") == [None]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('capture = "yes"\n', "3: flows.main.capture"),
        ('capture = { snaplen = "20B" }\n', "3: flows.main.capture.snaplen"),
        ('capture = { hosts = ["here"] }\n', "3: flows.main.capture.hosts"),
        ("capture = { size = 1 }\n", "3: flows.main.capture.size"),
        ('[axes]\ncapture = ["yes"]\n', '4: axes.capture[0]: cannot capture "yes"'),
        (
            f'capture = {{ hosts = ["to"] }}\n{ELSEWHERE}',
            "3: flows.main.capture: a server of others cannot record packets",
        ),
    ],
)
def test_a_capture_that_cannot_be_is_refused_with_its_line(captures, text, told):
    with pytest.raises(ProfileError) as error:
        captures(text)
    assert told in error.value.message
