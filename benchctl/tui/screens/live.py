"""A live run or a replay: figures, plots, trials, results, notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, closing
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widget import Widget

from benchctl.metrics import title_of
from benchctl.report.lines.hosts import host_lines
from benchctl.report.lines.spans import Span
from benchctl.report.progress.goals import has_goals
from benchctl.tui.draw.plot.charts import SIGNS, UNKNOWN
from benchctl.tui.draw.plot.choice import Choice, has_many_flows
from benchctl.tui.draw.views import status
from benchctl.tui.draw.views.flowlist import list_flows
from benchctl.tui.draw.views.goals import goal_notes
from benchctl.tui.meanings import AFTER, BEFORE, LISTED, VIEW
from benchctl.tui.model.feed import RunReader
from benchctl.tui.model.playhead import Playhead
from benchctl.tui.model.results import Results
from benchctl.tui.model.runview import RUNNING
from benchctl.tui.screens.base.page import AppContext
from benchctl.tui.screens.parts.plots import PLOT_KEYS
from benchctl.tui.screens.parts.reading import ReadingPage
from benchctl.tui.screens.parts.steering import KEYS
from benchctl.tui.widgets.chartview import ChartView, Tiles
from benchctl.tui.widgets.notes import Notes
from benchctl.tui.widgets.table import Table

SEEK_S = 5.0


class LiveScreen(ReadingPage):
    """One run, live or in replay."""

    NAME = "live"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), *ReadingPage.HORIZONTAL_BREAKPOINTS[2:]]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "freeze", "Freeze", id="live.freeze"),
        *PLOT_KEYS,
        # Before those of a list, which scrolls sideways with them elsewhere.
        Binding("left", "seek(-1)", "Seek", tooltip="Back 5 s", id="live.back", priority=True),
        Binding("right", "seek(1)", "Seek", tooltip="Forward 5 s", id="live.on", priority=True),
        Binding("shift+left", "seek(-6)", "Back 30 s", show=False, id="live.far_back"),
        Binding("shift+right", "seek(6)", "Forward 30 s", show=False, id="live.far_on"),
        Binding("less_than_sign,comma", "speed(-1)", "Speed", tooltip="Slower", id="live.slower"),
        Binding(
            "greater_than_sign,full_stop", "speed(1)", "Speed", tooltip="Faster", id="live.faster"
        ),
        Binding("left_square_bracket", "trial(-1)", BEFORE, show=False, id="live.before"),
        Binding("right_square_bracket", "trial(1)", AFTER, show=False, id="live.after"),
        Binding("v", "look", VIEW, show=False, id="live.look"),
        Binding("f", "follow", "Follow the trial that runs", show=False, id="live.follow"),
        Binding("l", "list", LISTED, show=False, id="live.list"),
        Binding("F", "facts", "Facts of the hosts", show=False, id="live.facts"),
        *KEYS,
    ]
    DEFAULT_CSS = """
    LiveScreen {
        Tiles { height: 2; padding: 0 1; }
        #middle { height: 1fr; layout: vertical; }
        ChartView { width: 1fr; height: 1fr; padding: 0 1; }
        Notes { padding: 0 1; }
        &.-short Notes { max-height: 2; }
        #side { height: auto; }
        Table, #remarks { display: none; padding: 0 1; height: 8; }
        &.-list-board #board { display: block; }
        #flows { height: 2; max-height: 9; }
        &.-list-flows #flows, &.-list-trials #trials,
        &.-list-results #results, &.-list-goals #goals, &.-list-remarks #remarks {
            display: block;
        }
        &.-tall Tiles { height: 4; }
        &.-wide.-tall, &.-huge.-tall {
            &.-hosts #board { display: block; }
            #middle {
                layout: grid;
                grid-size: 2 2;
                grid-columns: 5fr 4fr;
                grid-rows: 1fr 2;
            }
            #side { height: 100%; }
            #flows { display: block; max-height: 50%; }
            #trials { display: block; height: 1fr; }
            &.-list-flows #results, &.-list-trials #results { display: block; }
            #results, #goals, #remarks { height: 100%; column-span: 2; }
        }
        &.-huge.-tall, &.-wide.-tall.-many {
            ChartView { row-span: 2; }
            #results, #goals, #remarks { column-span: 1; }
        }
        &.-huge.-tall #middle { grid-columns: 1fr 92; }
        &.-tiny {
            #middle, #board, Notes { display: none; }
            Tiles { margin: 0; }
        }
    }
    """

    def __init__(
        self, around: AppContext, run_id: int, *, live: bool | None = None, at_s: float = 0.0
    ) -> None:
        """Show a run live, or as a replay from ``at_s`` on; None: live if it is running.

        Raises StoreError.
        """
        super().__init__(around, run_id)
        with ExitStack() as stores:
            self._feed = feed = stores.enter_context(closing(RunReader(around.store, run_id)))
            live = feed.under_way if live is None else live
            span = (None, None) if live else (feed.begin, feed.last_time())
            stores.pop_all()
        self._playhead = Playhead(around.clock, *span)
        self._playhead.seek(feed.begin + at_s)
        self._following = True
        self._results = Results(feed.view, feed.report_at, lambda: feed.ends_read)
        self.ready = False
        self._could = (False, False, False)
        """Whether the run could be resumed and had ended, and time stood, as keys were shown."""
        self._stood = False
        """Whether time stood when the screen was last shown: a replay's end is shown too."""
        self._tiles = Tiles(id="tiles")
        self._charts = ChartView(id="charts")
        self._hosts, self._notes = Notes(), Notes()
        if feed.board is not None:
            self.add_class("-list-board", "-hosts")
        else:  # The captions of plots are the legend of one or two.
            self.add_class("-list-flows" if len(feed.view.flows) > 2 else "-list-trials")
        if not live:
            self.bar.screen_name = "Replay"

    def body(self) -> Sequence[Widget]:
        self._middle = Container(self._charts, *self.lists(), id="middle")
        return [self._tiles, self._board, self._middle, self._hosts, self._notes]

    def on_mount(self) -> None:
        """Focus the list that is shown."""
        self.query_one(f"#{self._shown_list}").focus()

    def shows(self, run_ids: Sequence[int]) -> bool:
        return super().shows(run_ids) and self._playhead.live == self._feed.under_way

    def matters(self, binding: Binding) -> bool:
        match binding.action.partition("(")[0]:
            case "seek":
                return not self._playhead.live or self._playhead.standing
            case "speed":
                return not self._playhead.live
            case _:
                return super().matters(binding)

    def command(self) -> str:
        run = self.view.run
        if self._playhead.live:
            return f"benchctl tui --attach {run.name}"
        place = self._playhead.time() - (run.started_time or 0.0)
        return f"benchctl tui --replay {run.name} --at {place:.1f}s"

    def file_stem(self) -> str:
        return f"{self.view.run.name}-{self.NAME.lower()}"

    def meanings(self) -> Sequence[tuple[str, str]]:
        traces = self._feed.plotted
        if traces is None:
            return ()
        named = ((f"{title_of(name)} ({name})", traces.meanings[name]) for name in traces.metrics())
        return [*SIGNS, *((name, metric.description or UNKNOWN) for name, metric in named)]

    # --- display --------------------------------------------------------------------------

    def tick(self) -> None:
        """Read and show new data; on a frozen screen, neither."""
        self._read_all()
        standing = self._playhead.standing
        if self._playhead.frozen and not self.view.ended:
            self._show_title()
        if not standing or not self._stood or self._urgent:
            self._show()
        self._stood = standing

    def _show(self) -> None:
        view, time = self._feed.view, self._playhead.time()
        if self._following and (position := view.current_at(time)) >= 0:
            self._look_at(position)
        self._show_title()
        traces, position = self._feed.traces, self._feed.position
        self._tiles.show(status.tiles(view, traces, position, time))
        if position >= 0:
            self._show_charts(time)
        self._show_lists(time)
        # The list of remarks has them in full.
        notes = [] if self._remarks.display else status.remarks(view, time, position)
        trial = view.trials[position] if position >= 0 else None
        if not self._goals.display and has_goals(view.run):
            point = trial.point if trial is not None else {}
            notes = [*goal_notes(self._results.goals_at(time), point), *notes]
        if quiet := status.silence(view, traces, trial, time):
            notes.insert(0, [Span(f"! {quiet}", "warn")])
        if self._problem:
            notes.insert(0, [Span(f"! {self._problem}", "bad")])
        if not self._playhead.live and not view.ended:
            notes.insert(0, [Span("! the run goes on: f follows it", "warn")])
        self._notes.show(notes)
        clocks = trial.trial.clocks if trial is not None and trial.trial is not None else {}
        self._hosts.show(host_lines(view.run, clocks, only_lost=self._board.display))
        could = (view.can_resume_at(self.around.clock()), view.ended, self._playhead.standing)
        if self._could != could:
            self._could = could
            self.refresh_bindings()
        self._urgent = False
        if not self.ready and self.bar.size:
            has_samples = traces is not None and traces.metrics()
            if has_samples or self.settled:
                self.become_ready()

    def _show_title(self) -> None:
        view = self._feed.view
        standing = status.standing(view, self._playhead, goes_on=self._goes_on)
        if not self._following:
            standing.insert(0, Span(f"looking at trial {self._feed.position + 1}  ", "warn"))
        if self._feed.share_read < 1:
            standing.append(Span(f"  reading {self._feed.share_read:.0%}", "warn"))
        self.bar.show(f"{view.run.profile}  {view.run.name}", standing)

    def _show_charts(self, time: float) -> None:
        feed = self._feed
        assert feed.traces is not None
        trial = feed.view.trials[feed.position]
        # Many plots need the height.
        self.set_class(has_many_flows(feed.traces, self._choice), "-many")
        moment_s = trial.elapsed_s(time)
        span_s = max(feed.whole.span_s, feed.traces.end_s)
        moves = self._playhead.live and not self._playhead.standing
        running = trial.status_at(time) == RUNNING and not feed.view.died_at(time)
        cut = running and not moves
        until_s = moment_s if cut else math.inf
        shown = self._zoom.view(span_s, moment_s, until_s)
        self._show_plots(trial, shown)
        if self._flows.display:
            width, of = self._flows.size.width, self._samples_of
            self._flows.show_flows(
                list_flows(
                    trial.flows, feed.traces, self._choice, shown, width, of, running=running
                )
            )

    def _look_at(self, position: int) -> None:
        if position != self._feed.position:
            if self._trials.index == max(0, self._feed.position):
                self._trials.index = position
            self._urgent = True
        if self._feed.look_at(position, self._choice.split):
            self._read_all()

    def _change(self, choice: Choice) -> None:
        self._choice = choice
        if self._feed.position >= 0:
            self._look_at(self._feed.position)
        self._now()

    def fit(self) -> None:
        self._now()

    # --- keys -----------------------------------------------------------------------------

    def action_facts(self) -> None:
        """Show the facts of the hosts."""
        from benchctl.tui.screens.windows.facts import FactsWindow

        self.app.push_screen(FactsWindow(self.view.run))

    def action_freeze(self) -> None:
        """Freeze the screen, or continue."""
        self._playhead.toggle()
        self._read_all()
        self._now()

    def action_seek(self, steps: int) -> None:
        """Go to another moment, which freezes a live screen."""
        self._zoom = self._zoom.following
        self._playhead.move(steps * SEEK_S)
        self._now()

    def action_speed(self, steps: int) -> None:
        """Change the speed of the replay."""
        if not self._playhead.live:
            self._playhead.change_speed(steps)
            self._now()

    def action_trial(self, steps: int) -> None:
        """Select the trial before or after."""
        position = self._feed.position + steps
        if 0 <= position < len(self._feed.view.trials):
            self._choose(position)

    def on_table_chosen(self, event: Table.Chosen) -> None:
        """Show a trial in full; on the board, its plots."""
        board = self._feed.board
        if event.table is self._board and board is not None:
            pair, time = self._board.pair, self._playhead.time()
            position = board.trial_at(pair, time, self._feed.position)
            if position is None:
                self.notify("no trial of this pair has begun yet")
            else:
                self._choose(position)
        elif event.table is self._trials:
            from benchctl.tui.screens.windows.detail import TrialWindow

            known = self.view.known_at(self._playhead.time())
            which = self.run_ids[0], event.index, known
            self.app.push_screen(TrialWindow(self.around.store, *which))

    def on_table_moved(self, event: Table.Moved) -> None:
        """Draw the flow under the cursor, where only one is drawn."""
        if event.table is self._flows:
            self._change(self._flows.moved(self._choice))
        elif event.table is self._board:
            self._now()

    def action_look(self) -> None:
        """Look at the trial under the cursor."""
        self._choose(self._trials.index)

    def _choose(self, position: int) -> None:
        """Select a trial; a replay goes to it if it was measured already."""
        trial = self._feed.view.trials[position]
        if trial.started_time is None:
            self.notify("this trial has not begun yet")
            return
        self._zoom = self._zoom.following
        self._trials.go_to(position)
        if self._playhead.live:
            self._following = False
            self._look_at(position)
        else:
            self._playhead.seek(trial.started_time)
        self._now()

    def action_follow(self) -> None:
        """Follow the running trial from now on; of a replay, if its run goes on."""
        if not self._playhead.live and not self.view.ended:
            self.want("live", *self.run_ids)
            return
        self._following, self._zoom = True, self._zoom.following
        self._board.moved = False
        self._now()
