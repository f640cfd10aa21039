"""docs/images/: every picture is shown, and CONTRIBUTING.md says what makes it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
DRAWN = {".svg", ".png"}


def shown():
    """Return the pictures that the pages show or lead to."""
    return {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s#]+\.(?:svg|png))\)", page.read_text(encoding="utf-8"))
        if "://" not in target
    }


def test_every_picture_that_is_shown_is_there_and_the_other_way_round():
    assert shown() == {path for path in IMAGES.rglob("*") if path.suffix in DRAWN}


def test_every_picture_of_a_screen_or_a_command_has_the_command_that_makes_it():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    made = {name.replace("$name", "") for name in re.findall(r"([\w$-]+\.(?:svg|png))\b", text)}
    # A loop makes those of Live and of Summary, in all sizes and themes.
    names = {re.sub(r"^(live|summary)-[\w-]+", r"\1", path.name) for path in IMAGES.glob("*.*g")}
    assert names == made
