"""The table of the results so far is made anew when more is known, and only then."""

from types import SimpleNamespace

from benchctl.tui.model import results


def test_figures_that_come_after_the_end_of_their_trial_are_in_the_table(monkeypatch):
    monkeypatch.setattr(results, "search_table", lambda report: None)
    monkeypatch.setattr(results, "pivot", lambda report: report)
    monkeypatch.setattr(results, "goals_of", lambda report: ())
    view = SimpleNamespace(done_at=lambda time: 1, flows_ended=0)
    made = []

    def report_at(time):
        made.append(view.flows_ended)
        return view.flows_ended

    table = results.Results(view, report_at)
    assert [table.at(0.0), table.at(1.0)] == [0, 0]
    view.flows_ended = 2
    assert [table.at(1.0), table.at(1.0)] == [2, 2]
    assert made == [0, 2]
