"""A backend in a folder outside the repository is at home in every command, with its own metric."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from benchctl.report.output import formats

FOLDER = Path(__file__).with_name("stranger")
METRIC, COLUMN, TITLE = "download_time_s", "download_time", "download time"
PAGES = {"short.bin": 1_000, "long.bin": 2_000_000}


@pytest.mark.netns
@pytest.mark.tool("curl")
def test_a_strangers_headline_is_in_tables_comparisons_screens_plots_and_every_export(benchctl):
    import pyarrow.parquet

    here = benchctl.directory
    shutil.copytree(FOLDER, here, dirs_exist_ok=True)
    for page, size in PAGES.items():
        (here / page).write_bytes(bytes(size))
    benchctl.environment["BENCHCTL_PLUGINS"] = str(here / "download.py")

    def printed(*args):
        done = benchctl(*args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    heads, _, *rows = printed("run", "-q", "--trust", "pages.toml").splitlines()
    assert heads.split() == ["page", "n", COLUMN, "throughput"]
    assert [row.split()[:2] for row in rows[:2]] == [[page, "2"] for page in PAGES]
    assert f"receive    {METRIC} = " in printed("show", "--trials")
    assert COLUMN in printed("compare", "last", "last")
    assert COLUMN in printed("trend", "pages")
    assert TITLE in printed("plot", "--terminal")
    assert COLUMN in printed("report", "--format", "md")

    screens = {
        "live": ("--replay", "last", "--at", "10min"),
        "summary": ("last",),
        "compare": ("last", "last"),
    }
    for screen, words in screens.items():
        printed("tui", "--screen", screen, *words, "--screenshot", f"{screen}.txt")
        picture = (here / f"{screen}.txt").read_text()
        assert COLUMN in picture or TITLE in picture, screen

    for name in formats.names():
        chosen = ("--trial", "1") if name == "flent" else ()
        printed("export", "--format", name, "-o", f"run.{name}", *chosen)
    printed("export", "--samples", "-o", "run.samples.csv")
    for name in {*formats.names(), "samples.csv"} - {"flent", "parquet", "sqlite"}:
        assert COLUMN in (here / f"run.{name}").read_text(), name
    assert METRIC in pyarrow.parquet.read_schema(here / "run.parquet").names
    # flent has names for rates and round-trip times only.
    assert "throughput" in gzip.decompress((here / "run.flent").read_bytes()).decode().lower()
    assert COLUMN in printed("show", "run.sqlite")
    (flow,) = json.loads((here / "run.json").read_text())["trials"][0]["flows"]
    assert flow["metrics"][METRIC]["min"] > 0
    assert flow["sources"][METRIC] == "samples"
