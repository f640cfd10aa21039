import re

from docs.documents import DOCS

from benchctl import __version__

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def test_the_newest_version_is_the_programs_and_every_one_has_a_date():
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, *versions = re.findall(r"^## (.*)$", text, flags=re.M)
    assert unreleased == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", line) for line in versions)
    assert versions[0].startswith(f"[{__version__}]")
    assert set(re.findall(r"^### (.*)$", text, flags=re.M)) <= set(KINDS)


def test_each_thing_is_said_once():
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    said = re.findall(r"^- .*(?:\n  .*)*", text, flags=re.M)
    assert [one for one in dict.fromkeys(said) if said.count(one) > 1] == []
