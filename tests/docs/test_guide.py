"""docs/guide.md and docs/troubleshooting.md: profiles can be planned, messages are the code's."""

import ast
import re
from functools import cache

import pytest
from docs.documents import DOCS, blocks_of, names_in, text_of, write_files

from benchctl.backends import installed
from benchctl.plan.plan import make_plan
from benchctl.profile.load import load_profile

QUESTIONS = [
    "guide.md#measure-between-two-hosts",
    "day.md#a-profile",
    "guide.md#show-results-to-others",
    "guide.md#measure-one-way-delay",
    "output.md#what-the-columns-mean",
    "troubleshooting.md#why-did-this-fail",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_readme_links_to_the_heading_that_answers(question):
    page, _, anchor = question.partition("#")
    headings = re.findall(r"^## (.+)$", text_of(page), flags=re.M)
    assert anchor in {heading.lower().replace(" ", "-") for heading in headings}
    assert f"(docs/{question})" in text_of("../README.md")


@pytest.mark.parametrize(
    ("page", "file"),
    [(page, block.file) for page in ("guide.md", "tools.md") for block in blocks_of(page, "toml")],
)
def test_every_profile_of_the_guide_can_be_planned(tmp_path, page, file):
    write_files(page, tmp_path)
    assert len(make_plan(load_profile(str(tmp_path / file)), installed())) > 0


@cache
def _said():
    """Return every text of the code, those of f-strings up to and after what they fill in."""
    texts = []
    for folder in ("benchctl", "plugins"):
        for path in (DOCS.parent / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.append(node.value)
    return "\n".join(texts)


def _messages():
    rows = re.findall(r"^\| (`[^|]+`) \|", text_of("troubleshooting.md"), flags=re.M)
    return names_in([[row] for row in rows])


@pytest.mark.parametrize("message", _messages())
def test_every_message_is_one_that_the_code_prints(message):
    parts = [part.strip(" ,") for part in message.split("…")]
    assert [part for part in parts if part not in _said()] == []


def test_the_page_has_messages():
    assert len(_messages()) > 30
