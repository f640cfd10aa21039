"""The looks of roles in every theme."""

import pytest
from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES
from tui.driving import drive, notices, open_page, press

from benchctl.tui.themes import DARK, LOOKS, OURS, variables
from benchctl.tui.themes import style_of as style_of_role

GROUND = Color.parse("#204060")


def style_of(role, theme):
    colours = {**variables(theme), **theme.to_color_system().generate(), **theme.variables}
    return style_of_role(role, colours, GROUND, ansi=theme.ansi)


@pytest.mark.parametrize("theme", [*OURS, *BUILTIN_THEMES.values()], ids=lambda theme: theme.name)
def test_every_role_has_a_look_in_every_theme(theme):
    for role in LOOKS:
        assert style_of(role, theme).color is not None


def test_a_share_of_a_colour_lies_between_it_and_the_ground():
    text, ground = Color.parse(DARK.foreground), GROUND
    between = ground.blend(text, 0.75, 1.0)
    assert style_of("label", DARK) == Style.from_color(between.rich_color)


def test_only_a_cursor_with_or_without_the_keys_and_heat_have_a_ground_of_their_own():
    grounded = {role for role in LOOKS if style_of(role, DARK).bgcolor is not None}
    assert grounded == {"cursor", "chosen", *(f"heat-{step}" for step in range(7))}


def test_a_theme_that_was_chosen_is_remembered_and_a_full_disk_is_no_end(three):
    kept = []

    def remember(name):
        kept.append(name)
        if name == "dracula":
            raise OSError("no space left")

    async def script(pilot):
        assert kept == []  # the first one was not chosen here
        pilot.app.theme = "nord"
        await press(pilot)
        pilot.app.theme = "dracula"
        await press(pilot)
        assert kept == ["nord", "dracula"]
        assert "not remembered" in notices(pilot)

    drive(three, open_page(three, "history"), script, remember=remember)
