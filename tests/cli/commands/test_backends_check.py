"""``benchctl backends check``: its report says for each rule what was seen, or what to do."""

import json
from pathlib import Path

import pytest
from testing.sound_transcripts import TRANSCRIPTS

from benchctl.testing import RULES

WRITTEN = Path(__file__).parents[2] / "testing"


@pytest.fixture
def check(benchctl):
    benchctl.environment["PYTHONPATH"] = str(WRITTEN.parent)
    folder = benchctl.directory / "transcripts"
    folder.mkdir()
    for name, transcript in TRANSCRIPTS.items():
        transcript.save(folder / f"{name}.{transcript.role}.json")
    return lambda *args: benchctl("backends", "check", *args)


def test_a_backend_that_keeps_the_contract_passes_with_the_transcripts_beside_it(check):
    result = check(str(WRITTEN / "sound.py"))
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("ok ")] == list(RULES)
    assert "3 transcripts" in result.stdout
    assert lines[-1] == "11 ok"


def test_a_broken_rule_is_exit_code_1_and_says_what_to_do(check):
    result = check(str(WRITTEN / "wrong" / "moody.py"), "--json")
    assert result.returncode == 1
    found = {one["rule"]: one for one in json.loads(result.stdout)}
    assert found["commands"]["standing"] == "failed"
    assert all(fault["what"] and fault["remedy"] for fault in found["commands"]["faults"])
    assert found["cuts"]["standing"] == "ok"
    assert found["ends"]["seen"].startswith("needs no-such-program: ")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["no/such.py"], 2, "no/such.py: there is no such file"),
        (["nosuch"], 3, 'no backend "nosuch"'),
        (["ping", "--transcripts", "wrong"], 2, "x.client.json: not a transcript"),
    ],
)
def test_what_cannot_be_checked_is_one_line(check, benchctl, words, code, told):
    wrong = benchctl.directory / "wrong"
    wrong.mkdir()
    (wrong / "x.client.json").write_text("{}")
    result = check(*words)
    assert (result.returncode, result.stdout) == (code, "")
    assert told in result.stderr
