import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import ProfileError
from benchctl.profile.find import find_profile
from benchctl.toml.source import STDIN, dotted, merge, parse_toml, read_toml

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
inline = [
  {a = 1}, [2, [3, 4]], # {not = "one"}
  {b = """
]""", sub."key" = 2}]
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
        ("flows", "main", "list", 1): 11,
        ("flows", "main", "inline", 2, "sub", "key"): 16,
        ("flows", "main", "quoted key"): 17,
        ("flows", "main", "sub", "deep"): 18,
        ("exclude", 0, "streams"): 21,
        ("exclude", 1): 22,
        ("exclude", 1, "streams"): 23,
        ("exclude", 1, "more", "x"): 25,
        ("nowhere", "at all"): 1,
    }
    assert {key: source.line(key) for key in lines} == lines
    assert ("fake",) not in source.lines


def test_an_error_names_file_line_and_key():
    source = parse_toml(TEXT, Path("p.toml"))
    assert str(source.error(("exclude", 1, "streams"), "is bad")) == (
        "p.toml:23: exclude[1].streams: is bad"
    )
    assert dotted(()) == ""


def test_text_that_is_not_toml_names_the_line():
    with pytest.raises(ProfileError, match=r"p\.toml:2: invalid TOML: "):
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


# --- any TOML: a document is written from data, so that the line of every key is known -----------

scalars = st.sampled_from(
    ["1", "-1.5e3", "true", "inf", "1979-05-27 07:32:00", '"a"', "'b # ]'", '""', '"\\"}{ = ["']
)
many_lines = st.sampled_from(['"""\n[x]\na = 1\n"""', "'''\n]]}'''", '"""a\\"""\n""""'])
names = st.sampled_from(["a", "b-1", "3", '"c d"', "'e.f'", '"\\u0067\\""', '"[x]"'])


class Writer:
    """Writes TOML and notes where each key and item stands."""

    def __init__(self, draw):
        self.draw = draw
        self.text = ""
        self.lines = {}

    def write(self, text):
        self.text += text

    def note(self, key):
        self.lines[key] = self.text.count("\n") + 1

    def gap(self):
        """Write what may stand between the items of a list."""
        self.write(self.draw(st.sampled_from(["", " ", "\n", ' # ]} "\n', "\r\n\n"])))

    def value(self, key, depth=2, inline=False):
        kind = self.draw(st.sampled_from(["scalar", "list", "table"] if depth else ["scalar"]))
        if kind == "scalar":
            self.write(self.draw(scalars if inline else scalars | many_lines))
        elif kind == "list":
            self.write("[")
            for index in range(self.draw(st.integers(0, 3))):
                self.gap()
                self.note((*key, index))
                self.value((*key, index), depth - 1, inline)
                self.gap()
                self.write(",")
            self.gap()
            self.write("]")
        else:
            self.write("{")
            for index, name in enumerate(self.draw(st.lists(names, max_size=2, unique=True))):
                self.write(", " if index else " ")
                inner = (*key, _bare(name))
                self.note(inner)
                self.write(f"{name} = ")
                self.value(inner, depth - 1, inline=True)
            self.write("}")

    def pairs(self, table):
        for name in self.draw(st.lists(names, max_size=3, unique=True)):
            key = (*table, "deep", _bare(name))
            self.write(self.draw(st.sampled_from(["", "\n", "# [no] = 1\n", "  "])))
            self.note(key)
            self.write(f"deep . {name} = ")
            self.value(key)
            self.write(self.draw(st.sampled_from(["\n", " # x\n", "\r\n"])))


def _bare(name):
    return {'"c d"': "c d", "'e.f'": "e.f", '"\\u0067\\""': 'g"', '"[x]"': "[x]"}.get(name, name)


@given(st.data())
def test_the_line_of_every_key_and_item_is_known_whatever_the_layout(data):
    writer = Writer(data.draw)
    writer.pairs(())
    for name in data.draw(st.lists(names, max_size=3, unique=True)):
        writer.note(("table", _bare(name)))
        writer.write(f"[table.{name}] # [[x]]\n")
        writer.pairs(("table", _bare(name)))
    for index in range(data.draw(st.integers(0, 3))):
        writer.note(("array", index))
        writer.write("[[ array ]]\n")
        writer.pairs(("array", index))
        if data.draw(st.booleans()):
            writer.note(("array", index, "sub"))
            writer.write("[array.sub]\n")
            writer.pairs(("array", index, "sub"))
    source = parse_toml(writer.text, Path("p.toml"))
    assert {key: source.line(key) for key in writer.lines} == writer.lines


def test_toml_that_is_nested_too_deeply_is_refused():
    text = "a = ['[[', 2]\n# [[[\nb = 1\nc = " + "[" * 100_000 + "\n" + "]" * 100_000
    with pytest.raises(ProfileError, match=r"^p\.toml:4: invalid TOML: nested too deeply$"):
        parse_toml(text, Path("p.toml"))


def test_a_pipe_is_read_as_stdin(tmp_path):
    pipe = tmp_path / "p.toml"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        pool.submit(pipe.write_text, "title = 1\n")
        source = read_toml(find_profile(str(pipe)))
    assert (source.path, source.data) == (STDIN, {"title": 1})


def test_a_number_of_thousands_of_digits_is_refused():
    with pytest.raises(ProfileError, match=r"^p\.toml:1: invalid TOML: "):
        parse_toml("a = " + "1" * 5000, Path("p.toml"))


def test_a_key_is_written_as_toml_has_it():
    assert dotted(("axes", "main.window", "values", 2)) == 'axes."main.window".values[2]'
    assert dotted(("a\nb", "c")) == '"a\\nb".c'


tables = st.recursive(
    st.integers() | st.lists(st.integers()),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner),
)


@given(tables, tables)
def test_a_table_laid_over_another_wins_key_by_key(base, over):
    merged = merge({"top": base}, {"top": over})["top"]
    if not (isinstance(base, dict) and isinstance(over, dict)):
        assert merged == over
    else:
        assert list(merged) == list(dict.fromkeys([*base, *over]))
        for key in merged:
            both = key in base and key in over
            expected = merge({"x": base[key]}, {"x": over[key]})["x"] if both else None
            assert merged[key] == (expected if both else {**base, **over}[key])


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_files_of_other_editors_are_read_with_the_same_lines(tmp_path, mark, ends):
    path = tmp_path / "p.toml"
    path.write_bytes(mark + ends.join(["[a]", "b = 1", "[a.c]", "d = [", "  2,", "]", ""]).encode())
    source = read_toml(path)
    assert source.data == {"a": {"b": 1, "c": {"d": [2]}}}
    assert (source.line(("a", "b")), source.line(("a", "c", "d", 0))) == (2, 5)


def test_a_file_of_millions_of_values_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "p.toml"
    os.mkfifo(path)
    values = ",".join(map(str, range(500_000)))

    def write():
        with path.open("w") as file:
            file.write(f"a = [{values}]")

    with ThreadPoolExecutor() as pool:
        writing = pool.submit(write)
        with pytest.raises(ProfileError, match="larger than 500,000 characters"):
            read_toml(path)
        assert isinstance(writing.exception(), BrokenPipeError)  # nobody reads the rest


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[a]\n[a]", "2: invalid TOML: cannot declare a twice"),
        ("[a.b]\n[a.b]", "2: invalid TOML: cannot declare a.b twice"),
        ('["x y".b]\n["x y".b]', '2: invalid TOML: cannot declare "x y".b twice'),
        ("a = 1\na = 2\n", "2: invalid TOML: this key is already defined"),
    ],
)
def test_what_is_there_twice_is_named_as_it_is_written(text, what):
    with pytest.raises(ProfileError) as caught:
        parse_toml(text, Path("p.toml"))
    assert caught.value.message == f"p.toml:{what}"
