"""Keys that act on a run: skip a trial, stop the run, resume it, add a remark."""

from __future__ import annotations

from contextlib import closing

from textual.binding import Binding

from benchctl.errors import BenchctlError, StoreError
from benchctl.hosts.local.priority import at_full_priority
from benchctl.interrupts import held
from benchctl.store.manage import add_remark
from benchctl.store.read import Reader
from benchctl.tui.meanings import RUN
from benchctl.tui.model.runview import RunView
from benchctl.tui.screens.base.modals import Ask, Prompt
from benchctl.tui.screens.base.page import Page
from benchctl.units import format_count

KEYS = [
    Binding("K", "skip", "Skip", id="live.skip"),
    Binding("X", "stop", "Stop", id="live.stop"),
    Binding("r", "resume", "Resume", tooltip=RUN, id="live.resume"),
    Binding("n", "remark", "Remark", show=False, id="live.remark"),
]


class SteeringPage(Page):
    """A screen about one run, which it can steer; its bindings include `KEYS`."""

    @property
    def view(self) -> RunView:
        """The run as far as it is known."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        match action:
            case "resume":
                return self.view.can_resume_at(self.around.clock())
            case "skip" | "stop":
                return not self.view.ended
            case _:
                return True

    def action_skip(self) -> None:
        """Ask, and skip the running trial."""
        question, detail = "Skip this trial?", "It is marked as skipped; the next trial starts."
        if self.view.run.settings.parallel is not None:
            question, detail = "Skip all trials that run?", "They are marked as skipped."
        self._steer(question, detail, skip=True)

    def action_stop(self) -> None:
        """Ask, and stop the run."""
        rest = "" if self.view.run.person else "; benchctl resume continues with the rest"
        self._steer("Stop the run?", f"Measurements are kept{rest}.", skip=False)

    def _steer(self, question: str, detail: str, *, skip: bool) -> None:
        def answer(yes: bool | None) -> None:
            if not yes:
                return
            # Takes a quarter of a second the first time, for which the question does not wait.
            from benchctl.engine.runner.launch import skip_trial, stop

            step = skip_trial if skip else stop
            try:
                if not step(self.around.store, *self.run_ids):
                    self.notify("the run has ended")
            except StoreError as error:
                self.notify(error.message, severity="error")

        self.app.push_screen(Ask(question, detail), answer)

    def action_resume(self) -> None:
        """Measure the remaining trials, as `benchctl resume` does; if none, ask for the failed."""
        if self.view.left or not self.view.ended:
            self._resume(failed=False)
            return
        detail = f"{self.view.failed} failed; each gets another attempt, the others stay."
        self.app.push_screen(
            Ask("Measure the failed trials again?", detail),
            lambda yes: self._resume(failed=True) if yes else None,
        )

    def _resume(self, *, failed: bool) -> None:
        from benchctl.engine.runner.launch import launch_detached, left_to_resume

        (run_id,) = self.run_ids
        try:
            with closing(Reader(self.around.store)) as reader:
                left = left_to_resume(reader, reader.run(run_id), trust=False, failed=failed)
            with held():
                at_full_priority(launch_detached, self.around.store, run_id, failed=failed)
        except BenchctlError as error:
            self.complain(error)
            return
        self.notify(f"{format_count(left, 'trial')} left", title="resumed")
        self.want("live", run_id)

    def action_remark(self) -> None:
        """Add a remark to the run."""

        def take(text: str | None) -> None:
            if not text:
                return
            try:
                add_remark(self.around.store, self.run_ids[0], text, self.around.clock())
            except StoreError as error:
                self.notify(error.message, severity="error")
            self.fit()

        self.app.push_screen(Prompt("A remark about this run"), take)
