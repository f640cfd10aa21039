"""The settings of the screens, and the names of keys that the documents list."""

import re
from pathlib import Path

import pytest

from benchctl.errors import ProfileError
from benchctl.settings import UserSettings
from benchctl.tui.draw.text.glyphs import ASCII, BLOCKS, BRAILLE, CONSOLE
from benchctl.tui.keys import all_bindings
from benchctl.tui.preferences import Preferences, glyphs_of, preferences_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "tui.md"


def test_every_key_is_in_the_document_by_its_name_and_no_other():
    text = DOCUMENT.read_text("utf-8")
    rows = re.findall(r"^\| (.*) \| (.*) \| `(\w+\.\w+)` \|$", text, re.M)
    bindings = all_bindings()
    assert [name for _, _, name in rows] == list(bindings)
    assert all(keys.count("`") == 2 * len(bindings[n].key.split(",")) for keys, _, n in rows)
    assert [what for _, what, _ in rows] == [b.tooltip or b.description for b in bindings.values()]


def test_settings_that_are_not_there_have_their_defaults(tmp_path):
    assert preferences_of(UserSettings(tmp_path / "none.toml")) == Preferences()


def test_theme_glyphs_and_keys_are_read(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('theme = "nord"\nglyphs = "blocks"\n[keys]\n"live.freeze" = "f1"\n')
    assert preferences_of(UserSettings(path)) == Preferences("nord", BLOCKS, {"live.freeze": "f1"})


@pytest.mark.parametrize(
    ("text", "encoding", "term", "glyphs"),
    [
        ("", "utf-8", "xterm-256color", BRAILLE),
        ("", "UTF-8", "linux", CONSOLE),
        ("", "iso8859-1", "linux", ASCII),
        ("", "ascii", "xterm", ASCII),
        ("", None, "xterm", ASCII),
        ('glyphs = "braille"', "utf-8", "linux", BRAILLE),
        ('glyphs = "console"', "utf-8", "tmux-256color", CONSOLE),
        ('glyphs = "blocks"', "iso8859-15", "xterm", ASCII),
    ],
)
def test_the_terminal_has_the_characters_that_are_chosen(tmp_path, text, encoding, term, glyphs):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    found = UserSettings(path)
    assert glyphs_of(found, encoding, term) is glyphs
    assert preferences_of(found, encoding, term).glyphs is glyphs


def test_the_file_that_had_them_before_is_not_passed_over_in_silence(tmp_path):
    (tmp_path / "tui.toml").write_text('theme = "nord"\n')
    with pytest.raises(ProfileError, match=r"tui\.toml: the settings are in settings\.toml now"):
        preferences_of(UserSettings(tmp_path / "settings.toml"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('theme = "nrod"', 'settings.toml:1: theme: there is no "nrod"\ndid you mean "nord"?'),
        ('glyphs = "dots"', 'there is no "dots"\navailable: braille, blocks, console, ascii'),
        ('[keys]\n"live.freze" = "x"', 'there is no "live.freze"\ndid you mean "live.freeze"?'),
        ('[keys]\n"live.freeze" = 1', "is not a key"),
    ],
)
def test_a_wrong_setting_is_told_with_its_line_and_the_nearest_name(tmp_path, text, told):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(ProfileError) as caught:
        preferences_of(UserSettings(path))
    assert told in f"{caught.value.message}\n{caught.value.hint}"
