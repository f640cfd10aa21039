"""Keys that write profiles: edit one, copy it, write what was chosen as a new one."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from benchctl.errors import BenchctlError
from benchctl.hosts.local.priority import at_full_priority
from benchctl.profile.find import NO_LAB, packaged_profiles
from benchctl.tui.model.choices import Choices
from benchctl.tui.screens.base.modals import Prompt
from benchctl.tui.screens.base.tables import free_name
from benchctl.tui.screens.parts.offers import OffersPage

if TYPE_CHECKING:
    from benchctl.tui.screens.parts.drawn import Drawn


class EditingPage(OffersPage):
    """A page with a plan of the profile under the cursor, which it can edit and write."""

    _drawn: Drawn | None

    @property
    def choices(self) -> Choices:
        """What was chosen for what is under the cursor."""
        raise NotImplementedError

    def action_edit(self) -> None:
        """Open the profile in the editor; of one that comes with benchctl, a copy here."""
        path = self.offer.path
        if path is not None and path.is_relative_to(packaged_profiles()):
            self._copy(path)
            path = self.offer.path
        if path is None:
            self.notify("there is no profile to edit", severity="warning")
            return
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        try:
            with self.app.suspend():
                command = [*shlex.split(editor), str(path)]
                at_full_priority(subprocess.run, command, check=False)
        except OSError as error:
            self.notify(f"{editor}: {error.strerror}", severity="error")
        self.tick()

    def _copy(self, shipped: Path) -> None:
        """Copy a profile into this directory, and select it."""
        from benchctl.profile.derive import copied_profile

        self._add(free_name(Path(), shipped.stem, shipped.suffix), copied_profile(shipped))

    def action_write(self) -> None:
        """Write what was chosen as a new profile in this directory, and select it."""
        from benchctl.profile.derive import derived_profile, lasting_name

        prepared, base = self._drawn and self._drawn.prepared, self.offer.path
        if not prepared:
            self.notify("there is no plan to write", severity="warning")
            return
        document, here = prepared.plan.document, Path.cwd()
        if base is None:
            stem, text = "quick", document.sources[0].text
        else:
            full = base.resolve()
            named = str(full.relative_to(here)) if full.is_relative_to(here) else lasting_name(full)
            stem = f"{base.stem}-changed"
            try:
                text = derived_profile(document, named, lab=self.choices.lab != NO_LAB)
            except BenchctlError as error:
                self.complain(error)
                return

        def take(name: str | None) -> None:
            if name:
                self._add(Path(name).with_suffix(".toml"), text)

        first = free_name(Path(), stem, ".toml").stem
        self.app.push_screen(Prompt("Write a profile here, named", first), take)

    def _add(self, path: Path, text: str) -> None:
        """Write a new profile into this directory, and select it."""
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self.notify(f"{path}: {error.strerror}", severity="error")
            return
        self.notify(str(path), title="written")
        self.look_for_profiles()
        self.go_to(path)
        self._list.focus()
