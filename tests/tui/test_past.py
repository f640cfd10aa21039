import pytest
from tui.made_runs import BEGIN, MadeRun, whole_run

from benchctl.metrics import Vocabulary
from benchctl.store.bulk import Bulk
from benchctl.store.manage import set_tags
from benchctl.store.read import Reader
from benchctl.tui.draw.runs import run_columns, run_row
from benchctl.tui.model.past import past_of


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "runs.sqlite"
    whole_run(path)
    whole_run(path, name="second", factor=1.1, begin=BEGIN + 3600)
    whole_run(path, name="elsewhere", profile="other", begin=BEGIN + 7200)
    made = MadeRun(path, name="cut off", begin=BEGIN + 9000)
    made.begin()
    made.close()
    set_tags(path, 1, ["baseline", "kitchen"])
    reader, bulk = Reader(path), Bulk(path)
    yield past_of(reader.runs(), bulk.means(Vocabulary().wanted))
    reader.close()
    bulk.close()


def test_every_run_has_its_key_figure_and_its_difference_from_the_baseline(history):
    cut_off, elsewhere, second, first = history
    assert [one.metric for one in history] == ["", *["throughput_bps"] * 3]
    assert second.difference == pytest.approx(0.1, abs=0.01)
    assert first.difference is None
    assert elsewhere.difference is None
    assert (cut_off.run.status, cut_off.figure) == ("died", None)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", 4), ("tour", 3), ("OTHER", 1), ("tour kitchen", 1), ("failed", 3), ("died", 1),
        ("probe-1", 4), ("nothing of that", 0),
    ],
)  # fmt: skip
def test_a_filter_finds_runs_by_all_that_is_shown_of_them(history, text, names):
    assert len([one for one in history if one.matches(text)]) == names


@pytest.mark.parametrize("width", [40, 78, 118, 200])
def test_columns_are_left_out_where_there_is_no_room_and_rows_have_a_cell_for_each(history, width):
    heads = run_columns(history, width)
    assert {"run", "status", "figure", "baseline", "tags"} <= {column.head for column in heads}
    for one in history:
        assert len(run_row(one, heads, marked=False)) == len(heads)
    if width >= 118:
        assert "when" in [column.head for column in heads]
        assert sum(column.width + 2 for column in heads) <= width + 2


def test_what_a_run_is_beside_its_baseline_is_told(history):
    heads = run_columns(history, 80)
    place = [column.head for column in heads].index("baseline")
    assert [run_row(one, heads, marked=False)[place].text for one in history[1:]] == [
        "-", "+10.0 %", "is it",
    ]  # fmt: skip
    assert run_row(history[1], heads, marked=True)[0].text == "●"
