"""The settings of the screens, and the names of keys that the man page lists."""

import pytest

from benchctl.errors import ProfileError
from benchctl.settings import UserSettings
from benchctl.tui.draw.text.glyphs import ASCII, BLOCKS, BRAILLE, CONSOLE
from benchctl.tui.keys import all_bindings, described
from benchctl.tui.preferences import Preferences, glyphs_of, preferences_of


def test_every_key_is_described_by_its_name_and_as_it_is_typed():
    rows = dict(described())
    assert [row.split()[0] for row in rows] == list(all_bindings())
    assert rows["live.before  ["] == "The trial or run before"
    assert rows["live.zoom_in  + ="] == "Zoom"
    assert "live.freeze  space" in rows


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
