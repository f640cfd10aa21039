"""The site of the documents, for ``make docs``: README.md is its first page, every link is checked.

Sphinx reads the files where they stand, so that a link means the same here and on a forge.
"""

import re
import shutil
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

project = "benchctl"
copyright = "the benchctl authors"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md"]
nitpicky = True
myst_heading_anchors = 4
html_theme = "furo"
html_title = "benchctl"
html_copy_source = False

INDEX = "docs/README"


def _pages_of(part):
    """Return the pages that a part of the index links to, each with those of its folder."""
    for link in re.findall(r"\]\(([^)#]+\.md)", part):
        page = (DOCS / link).resolve()
        beside = sorted(page.parent.glob("*.md")) if page.parent not in {DOCS, ROOT} else []
        yield from (path.relative_to(ROOT).with_suffix("").as_posix() for path in (page, *beside))


def _contents():
    """Return the list of all pages: those of the index in its parts, then all others."""
    _, *parts = re.split(r"^## ", (ROOT / INDEX).with_suffix(".md").read_text(), flags=re.M)
    listed = {"Documents": [INDEX]}
    for part in parts:
        listed[part.partition("\n")[0]] = list(dict.fromkeys(_pages_of(part)))
    named = {page for pages in listed.values() for page in pages}
    every = [path.relative_to(ROOT).with_suffix("").as_posix() for path in DOCS.rglob("*.md")]
    listed["More"] = sorted({*every} - named)
    lists = [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", *pages, "```"])
        for caption, pages in listed.items()
        if pages
    ]
    return "\n" + "\n".join(lists) + "\n"


def _add_contents(_, name, source):
    if name == root_doc:
        source[0] += _contents()


def _front_page(app, error):
    if not error:
        shutil.copy(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app):
    """Add to README.md the list of pages, which only the site needs, and make it the first page."""
    app.connect("source-read", _add_contents)
    app.connect("build-finished", _front_page)
