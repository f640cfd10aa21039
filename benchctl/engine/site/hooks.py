"""The commands of a profile's hosts before and after each attempt at a trial, and each run.

They run one after another, in the order of the profile. After one that fails, no other prepares;
every one that cleans up runs. What ran is kept with its trial, or with the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any

from benchctl.engine.site.context import RunContext
from benchctl.errors import HookError
from benchctl.hosts.local.spawn import has_ended, stop
from benchctl.run.planned import Hook, Host, Network, When
from benchctl.run.record import HookOutcome

# Nobody who prepares a measurement wants to wait longer without a word.
LIMIT_S = 300.0
# The end of the output says why a command failed.
OUTPUT_KEPT = 8192


class Hooks:
    """Runs the commands of one run's hosts."""

    def __init__(
        self, context: RunContext, is_away: Callable[[Host], bool] = lambda _: False
    ) -> None:
        """A host that ``is_away`` prepares nothing, and cleans up nothing."""
        self._is_away = is_away
        self._context = context
        self._hooks = context.settings.hooks
        self._recorder = context.recorder
        self._of_run = list(context.run.hooks)
        self._ready: dict[str, Host] = {}
        """The hosts on which the run was prepared."""
        self._network: Network | None = None
        """That of the last attempt."""
        self._preparing = asyncio.Lock()
        self._of_trial: dict[int, list[HookOutcome]] = {}
        """What ran around each trial that is measured, by its id."""
        self._within: dict[int, Collection[str]] = {}
        """The hosts that prepare each attempt which has begun."""

    async def before(
        self,
        trial_id: int,
        earlier: Sequence[HookOutcome],
        network: Network,
        hosts: Collection[str] | None = None,
    ) -> None:
        """Prepare the hosts for one attempt at a trial, of which ``earlier`` ran already.

        Only those of ``hosts``, if others measure at the same time. Raises HookError if a command
        fails.
        """
        self._network = network
        async with self._preparing:
            await self._prepare_run(network)
        if trial_id not in self._of_trial:
            if hosts is None:
                self._of_trial.clear()
            self._of_trial[trial_id] = list(earlier)
        within = self._within[trial_id] = network.hosts if hosts is None else hosts
        for hook in self._of(When.PREPARE, network):
            if hook.host in within:
                outcome = await self._run_for_trial(trial_id, hook, network)
                if outcome.problem:
                    raise HookError(outcome.problem, of_run=False)

    async def after(self, trial_id: int) -> None:
        """Clean up after one attempt, however it ended; nothing if it did not begin."""
        within = self._within.pop(trial_id, None)
        if within is None or self._network is None:
            return
        for hook in await self._still(When.CLEANUP, self._network):
            if hook.host in within:
                self._warn(await self._run_for_trial(trial_id, hook, self._network), trial_id)

    async def close(self) -> None:
        """Clean up after the run, on the hosts that were prepared and still exist."""
        if self._network is None:
            return
        for hook in await self._still(When.CLEANUP_RUN, self._network):
            self._warn(await self._run_for_run(hook, self._network), None)

    async def _prepare_run(self, network: Network) -> None:
        """Prepare the hosts that are new: a lab that was built again has new ones."""
        fresh = {
            hook.host: network.hosts[hook.host]
            for hook in self._hooks
            if self._ready.get(hook.host) != network.hosts[hook.host]
            and not self._is_away(network.hosts[hook.host])
        }
        for hook in self._of(When.PREPARE_RUN, network):
            if hook.host in fresh:
                outcome = await self._run_for_run(hook, network)
                if outcome.problem:
                    raise HookError(outcome.problem, of_run=True)
        self._ready |= fresh

    def _of(self, when: When, network: Network) -> list[Hook]:
        hooks = [hook for hook in self._hooks if hook.when is when]
        return [hook for hook in hooks if not self._is_away(network.hosts[hook.host])]

    async def _still(self, when: When, network: Network) -> list[Hook]:
        """Return the commands whose hosts exist: those of a lab that has failed are gone."""
        hooks = self._of(when, network)
        if hooks and await self._context.site.failure_reason():
            return [hook for hook in hooks if not network.hosts[hook.host].prefix]
        return hooks

    async def _run_for_trial(self, trial_id: int, hook: Hook, network: Network) -> HookOutcome:
        outcome = await self._run(hook, network.hosts[hook.host])
        self._of_trial[trial_id].append(outcome)
        self._recorder.update_trial(trial_id, hooks=self._of_trial[trial_id])
        return outcome

    async def _run_for_run(self, hook: Hook, network: Network) -> HookOutcome:
        outcome = await self._run(hook, network.hosts[hook.host])
        self._of_run.append(outcome)
        self._recorder.update_run(hooks=self._of_run)
        return outcome

    def _warn(self, outcome: HookOutcome, trial_id: int | None) -> None:
        if outcome.problem:
            self._context.note(outcome.problem, "warning", trial_id)

    async def _run(self, hook: Hook, host: Host) -> HookOutcome:
        output = bytearray()

        def take(_: Any, data: bytes) -> None:
            output.extend(data)
            del output[:-OUTPUT_KEPT]

        argv = ("/bin/sh", "-c", hook.command)
        try:
            process = await self._context.hosts.start(host, argv, {}, take)
        except OSError as error:
            return HookOutcome(hook.host, hook.when, hook.command, None, error.strerror or "")
        process.begin()
        try:
            if not await has_ended(process, LIMIT_S):
                output += f"\nit did not end within {LIMIT_S:.0f} s\n".encode()
        finally:
            code = await stop(process, "SIGTERM")  # no effect on a command that has ended
        text = output.decode("utf-8", "replace")
        return HookOutcome(hook.host, hook.when, hook.command, code, text)
