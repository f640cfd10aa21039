"""What lies beyond an axis is marked there, with its value."""

from hypothesis import given
from hypothesis import strategies as st

from benchctl.tui.draw.plot.edges import Beyond, edge_row, event_row


def row(*found, width=40):
    beyond = [Beyond(column, far, far, "r", text) for column, far, text in found]
    cells = edge_row(beyond, str, "▲", width)
    return "".join(text for _, text in cells)


def test_every_value_has_a_mark_and_each_group_the_value_of_its_farthest():
    assert row((3, 290.0, "290"), (20, 50.0, "50")).rstrip() == "   ▲290             ▲50"
    assert row((3, 1.0, "1"), (4, 290.0, "290"), (5, 2.0, "2")).rstrip() == "   ▲▲290"
    assert row((9, 1.0, "1"), (9, 7.0, "7")).rstrip() == "         ▲7"


def test_where_texts_would_overlap_the_farther_value_is_shown():
    assert row((3, 290.0, "290"), (6, 999.0, "999")).strip() == "▲  ▲999"


def test_a_value_at_the_right_end_is_at_the_left_of_its_mark():
    assert row((38, 290.0, "290")) == " " * 35 + "290▲ "
    assert row((1, 290.0, "290"), width=3) == " ▲ "


@given(st.dictionaries(st.integers(0, 59), st.integers(1, 10**6), min_size=1))
def test_no_value_is_without_a_mark_nearby_and_the_farthest_is_told(values):
    told = row(*((column, float(v), str(v)) for column, v in values.items()), width=60)
    assert len(told) == 60
    assert str(max(values.values())) in told
    for column in values:
        assert told[column] != " "


def events(*found, width=40):
    beyond = [Beyond(column, -at_s, at_s, "r", text) for column, at_s, text in found]
    return "".join(text for _, text in event_row(beyond, "◆", width))


def test_the_words_of_an_event_hide_no_other():
    assert events((3, 1.0, "drop"), (20, 5.0, "recovery")).rstrip() == (
        "   ◆drop            ◆recovery"
    )
    assert events((3, 1.0, "delay step"), (8, 2.0, "drop"), (9, 3.0, "x")).rstrip() == (
        "   ◆del…◆◆x"
    )
    # Of two at one place the first is shown; the last one's words may stand before it.
    assert events((3, 1.0, "drop"), (3, 0.5, "stall")).rstrip() == "   ◆stall"
    assert events((38, 1.0, "drop")) == " " * 34 + "drop◆ "
    assert events((37, 1.0, "a"), (38, 2.0, "drop")) == " " * 37 + "◆◆ "
