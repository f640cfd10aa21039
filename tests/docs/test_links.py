"""The documents lead to each other, and to files that are there."""

import re

import pytest
from docs.documents import DOCS

PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]


def links():
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
            yield page, target


def anchors_of(page):
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    ("page", "target"), list(links()), ids=lambda value: getattr(value, "name", value)
)
def test_every_link_leads_somewhere(page, target):
    path, _, anchor = target.partition("#")
    goal = page.parent / path if path else page
    assert goal.exists()
    assert not anchor or anchor in anchors_of(goal)
