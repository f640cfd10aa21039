"""Matplotlib, imported when a figure is drawn, and so that only benchctl and ``--style`` set it up.

Matplotlib obeys a ``matplotlibrc`` in the working directory, in the environment and at home, logs
to stderr if it finds no place for its cache, and refuses to be imported with a wrong MPLBACKEND.
None of this may decide how a figure looks, or whether there is one.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchctl.errors import MissingError, UsageError, nearest
from benchctl.units import quoted

# Okabe and Ito, "Color Universal Design" (2008), without the yellow, which paper does not show, and
# with the grey that the palette has beside it.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999",
)  # fmt: skip
_OURS: Mapping[str, Any] = {
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.figsize": (6.4, 3.8),
    "figure.titlesize": "medium",
    "font.size": 9,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.fontsize": "small",
    "legend.frameon": False,
    "legend.title_fontsize": "small",
    "lines.linewidth": 1.3,
    "lines.markersize": 5,
    "savefig.dpi": 200,
}
_ALWAYS: Mapping[str, Any] = {
    # Titles are other people's text, and not a program of TeX.
    "text.usetex": False,
    "text.parse_math": False,
    "axes.formatter.use_mathtext": False,
    "axes.formatter.useoffset": False,
    # Equal data makes equal bytes.
    "svg.hashsalt": "benchctl",
    "savefig.bbox": None,
    # Publishers refuse Type 3 fonts.
    "pdf.fonttype": 42,
    # Text stays text: small, found by a search, and read aloud.
    "svg.fonttype": "none",
}


def load() -> Any:
    """Import Matplotlib, whatever lies around. Raises MissingError without it."""
    spec = find_spec("matplotlib")
    if spec is None or spec.origin is None:
        raise MissingError(
            "figures need Matplotlib, which is not installed",
            'pip install "benchctl[plot]"; --terminal draws without it',
        )
    logging.getLogger("matplotlib").setLevel(logging.CRITICAL)
    with _in_its_own_folder(Path(spec.origin).parent / "mpl-data"):
        import matplotlib
        import matplotlib.figure
        import matplotlib.font_manager
        import matplotlib.ticker
    return matplotlib


@contextmanager
def _in_its_own_folder(folder: Path) -> Iterator[None]:
    """Be where Matplotlib's own matplotlibrc is, which it looks for in the working directory."""
    backend = os.environ.pop("MPLBACKEND", None)
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chdir(folder)
        yield
    finally:
        os.fchdir(here)
        os.close(here)
        if backend is not None:
            os.environ["MPLBACKEND"] = backend


@contextmanager
def styled(style: str | None) -> Iterator[Any]:
    """Import Matplotlib and set it up, for a while; ``style`` goes before what is ours.

    Raises MissingError, and UsageError for a style that is none.
    """
    # Somebody else may have imported it, and set it up in another way.
    fresh = "matplotlib" not in sys.modules
    with warnings.catch_warnings():
        # What an older Matplotlib does with newer libraries is no concern of who draws.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        # A viewer of an SVG has the characters that the font here lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        # A style may ask for a figure that is too small for its texts.
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        matplotlib = load()
        chosen = {} if style is None else _style(matplotlib, style)
        with matplotlib.rc_context():
            if not fresh:
                defaults = dict(matplotlib.rcParamsDefault)
                defaults.pop("backend", None)
                matplotlib.rcParams.update(defaults)
            cycle = matplotlib.rcsetup.cycler(color=COLOURS)
            matplotlib.rcParams.update({**_OURS, "axes.prop_cycle": cycle, **chosen, **_ALWAYS})
            yield matplotlib


def _style(matplotlib: Any, name: str) -> Mapping[str, Any]:
    """Return the settings of one of Matplotlib's styles, or of a file. Raises UsageError."""
    import matplotlib.style as styles

    if name in styles.library:
        return dict(styles.library[name])
    path = Path(name)
    if not path.is_file():
        hint = nearest(name, styles.library) or "name a style file, or a style of Matplotlib"
        raise UsageError(f"--style: there is no file and no style {quoted(name)}", hint)
    try:
        # By its absolute path: Matplotlib takes a name with :// for one on the network.
        found = matplotlib.rc_params_from_file(
            path.resolve(), fail_on_error=True, use_default_template=False
        )
    except (ValueError, OSError, UnicodeError, SyntaxError) as error:
        why = " ".join(str(error).split())
        raise UsageError(f"--style {name}: {why}", "it is no Matplotlib style file") from None
    return {key: value for key, value in dict(found).items() if key != "backend"}


def missing_characters(matplotlib: Any, text: str) -> Sequence[str]:
    """Return the characters of a text that the current font cannot draw."""
    fonts = matplotlib.font_manager
    path = fonts.findfont(fonts.FontProperties())
    known = fonts.get_font(path).get_charmap()
    return [character for character in text if ord(character) not in known]
