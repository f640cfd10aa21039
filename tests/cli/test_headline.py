"""The figures of a plugin with only its own metrics appear wherever others' figures do."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from benchctl.report.lines.spans import to_text
from benchctl.tui.draw.plot.charts import compose
from benchctl.tui.draw.plot.choice import Choice
from benchctl.tui.model.feed import RunReader
from benchctl.tui.model.zoom import View

PROFILE = '[flows.main]\nbackend = "oracle"\nto = "local"\n[axes]\n"main.truth" = [1, 4]\n'


@pytest.fixture
def oracle(benchctl):
    benchctl.environment["BENCHCTL_PLUGINS"] = str(Path(__file__).with_name("oracle.py"))
    first = benchctl("run", "-q", benchctl.profile(PROFILE), "--repeat", "2")
    assert first.returncode == 0, first.stderr
    assert benchctl("run", "-q", "p.toml", "--set", "main.truth=3,4").returncode == 0
    return benchctl, first.stdout


def test_it_has_columns_in_tables_and_rows_in_comparisons(oracle):
    benchctl, table = oracle
    heads, _, *rows = table.splitlines()
    assert heads.split() == ["main.truth", "n", "clarity", "doubts"]
    assert rows[0].split()[:4] == ["1", "2", "50", "%"]
    assert rows[0].split()[-2:] == ["2", "±0"]
    assert "| main.truth | n | clarity | doubts |" in benchctl("export", "--format", "md").stdout
    first = json.loads(benchctl("runs", "--json").stdout.splitlines()[1])["id"]
    compared = benchctl("compare", first, "last").stdout
    assert "clarity" in compared
    assert "doubts" in compared
    assert "nods" not in compared


def test_its_headline_is_plotted_first_and_listed_with_the_trials(oracle):
    benchctl, _ = oracle
    with closing(RunReader(benchctl.store, 1)) as feed:
        while feed.poll(1.0):
            pass
        feed.look_at(0)
        while feed.poll(1.0):
            pass
        assert feed.traces.metrics() == ["clarity_ratio", "doubts", "nods"]
        drawn = to_text(compose(feed.traces, Choice(), View(0.0, 2.0), 60, 10))
        assert "clarity  a main" in drawn
        figures = feed.view.trials[0].flows["main"].figures
        assert {metric for _, metric in figures} == {"clarity_ratio", "doubts"}
