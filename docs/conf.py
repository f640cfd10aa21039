"""The site of the documents, for ``make docs``: README.md is its first page, every link is checked.

Sphinx reads the files where they stand, so that a link means the same here and on a forge.
"""

import shutil
from pathlib import Path

project = "benchctl"
copyright = "the benchctl authors"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md"]
nitpicky = True
myst_heading_anchors = 4
html_theme = "furo"
html_title = "benchctl"
html_copy_source = False

CONTENTS = """
```{toctree}
:hidden:
:caption: Use
docs/guide
docs/day
docs/hosts
docs/troubleshooting
docs/commands
docs/profile
docs/tools
docs/output
docs/packets
docs/tui
docs/lab
docs/experiments
docs/simpleperf-protocol
docs/owamp
```
```{toctree}
:hidden:
:caption: Extend
docs/plugins
docs/architecture
```
```{toctree}
:hidden:
:caption: Project
CONTRIBUTING
SECURITY
CHANGELOG
```
"""


def _contents(_, name, source):
    if name == root_doc:
        source[0] += CONTENTS


def _front_page(app, error):
    if not error:
        shutil.copy(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app):
    """Add to README.md the list of pages, which only the site needs, and make it the first page."""
    app.connect("source-read", _contents)
    app.connect("build-finished", _front_page)
