from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import ProfileError
from benchctl.profile.source import dotted, parse_toml, read_toml

TEXT = '''\
title = "a"   # [not.a.table]

[flows.main]
backend = "iperf3"
note = """
[fake]
key = 1
"""
list = [
  "x",  # ]
  "y",
]
"quoted key" = 1
sub.deep = 2

[[exclude]]
streams = 1
[[exclude]]
streams = 2
[exclude.more]
x = 1
'''


def test_every_key_knows_its_line():
    source = parse_toml(TEXT, Path("p.toml"))
    lines = {
        (): 1,
        ("title",): 1,
        ("flows", "main"): 3,
        ("flows", "main", "backend"): 4,
        ("flows", "main", "list"): 9,
        ("flows", "main", "list", 1): 9,
        ("flows", "main", "quoted key"): 13,
        ("flows", "main", "sub", "deep"): 14,
        ("exclude", 0, "streams"): 17,
        ("exclude", 1): 18,
        ("exclude", 1, "streams"): 19,
        ("exclude", 1, "more", "x"): 21,
        ("nowhere", "at all"): 1,
    }
    assert {key: source.line(key) for key in lines} == lines
    assert ("fake",) not in source.lines


def test_an_error_names_file_line_and_key():
    source = parse_toml(TEXT, Path("p.toml"))
    assert str(source.error(("exclude", 1, "streams"), "is bad")) == (
        "p.toml:19: exclude[1].streams: is bad"
    )
    assert dotted(()) == ""


def test_text_that_is_not_toml_names_the_line():
    with pytest.raises(ProfileError, match=r"p\.toml:2: not TOML: "):
        parse_toml("a = 1\nb = = 2\n", Path("p.toml"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ProfileError, match="No such file"):
        read_toml(tmp_path / "no.toml")


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "b.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(ProfileError, match="not UTF-8"):
        read_toml(tmp_path / "b.toml")


@given(st.text(max_size=300))
def test_any_text_gives_data_or_our_error_in_one_line(text):
    try:
        message = parse_toml(text, Path("p.toml")).error((), "x").message
    except ProfileError as error:
        message = error.message
    assert message.startswith("p.toml:")
    assert "\n" not in message
