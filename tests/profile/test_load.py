from pathlib import Path

import pytest

from benchctl.errors import ProfileError
from benchctl.profile.find import find_profile, find_topology, packaged_profiles
from benchctl.profile.load import load_profile

BASE = """\
title = "base"
[servers.paris]
host = "p"
port = 5201
[defaults]
omit = "1s"
[flows.main]
backend = "stream"
streams = 2
[axes]
streams = [1, 2, 4, 8]
[axes.server]
sets = "to"
values = ["paris"]
[[exclude]]
streams = 1
[[exclude]]
streams = 2
[lab]
topology = "t.toml"
"""


LONG = "x" * 300  # longer than any file's name may be


@pytest.fixture
def write(here):
    def write(name, text):
        path = here / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    return write


def refused(name, *settings):
    with pytest.raises(ProfileError) as caught:
        load_profile(name, settings)
    return caught.value


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rate", "1Mbit", 1e6), ("delay", "5ms", 0.005), ("jitter", "1ms", 0.001),
        ("loss", "2%", 0.02),
    ],
)  # fmt: skip
def test_each_setting_of_a_link_may_change_alone(write, name, text, value):
    change = f'[[lab.changes]]\nat = "1s"\nlink = "core"\n{name} = "{text}"\n'
    write("p.toml", BASE + change)
    (found,) = load_profile("p.toml").model.lab.changes
    assert getattr(found, name) == pytest.approx(value)


# --- extends ---------------------------------------------------------------------------------


def test_tables_merge_and_everything_else_is_replaced(write):
    write("base.toml", BASE)
    write("p.toml", 'extends = "base.toml"\n[servers.paris]\nport = 9200\n[servers.oslo]\n'
          'host = "o"\n[axes]\nstreams = [4]\nserver = {values = ["oslo"]}\n[[exclude]]\n'
          "streams = 4\nserver = 'oslo'\n")  # fmt: skip
    model = load_profile("p.toml").model
    assert model.title == "base"
    assert model.servers["paris"].host == "p"
    assert model.servers["paris"].port == (9200, 9200)
    assert model.servers["oslo"].host == "o"
    assert model.axes["streams"].values == [4]
    assert (model.axes["server"].sets, model.axes["server"].values) == (["to"], ["oslo"])
    assert model.exclude == [{"streams": [4], "server": ["oslo"]}]
    assert model.flows["main"].model_extra == {"streams": 2}


def test_a_base_may_have_a_base_and_lie_elsewhere(write):
    write("bases/base.toml", BASE)
    write("bases/middle.toml", 'extends = "base.toml"\ntitle = "middle"\n')
    write("p.toml", 'extends = "bases/middle.toml"\n')
    document = load_profile("p.toml")
    assert document.model.title == "middle"
    assert [source.path.name for source in document.sources] == [
        "p.toml",
        "middle.toml",
        "base.toml",
    ]
    assert document.name == "p"
    assert document.text.startswith('# p.toml\nextends = "bases/middle.toml"\n\n# middle.toml\n')


def test_the_topology_lies_beside_the_file_that_names_it(write):
    write("bases/base.toml", BASE)
    write("p.toml", 'extends = "bases/base.toml"\n')
    write("q.toml", 'extends = "bases/base.toml"\n[lab]\ntopology = "u.toml"\n')
    assert str(load_profile("p.toml").topology) == str(Path("bases", "t.toml"))
    assert str(load_profile("q.toml").topology) == "u.toml"
    assert str(load_profile("p.toml", ["lab.topology=v.toml"]).topology) == "v.toml"
    write("r.toml", '[flows.main]\nbackend = "stream"\n')
    assert load_profile("r.toml").topology is None


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ('host = "p"', "host = 1", "base.toml:3: servers.paris.host: must be a string, in quotes"),
        ('host = "p"', 'hots = "p"', "base.toml:3: servers.paris.hots: unknown key"),
        ("[axes]\n", "[axes]\nx = []\n", "base.toml:11: axes.x: must not be empty"),
    ],
)
def test_a_mistake_in_the_base_names_the_base_and_its_line(write, old, new, line):
    write("base.toml", BASE.replace(old, new))
    write("p.toml", '# a comment\nextends = "base.toml"\n')
    assert refused("p.toml").message == line


def test_a_file_is_named_without_detours_unless_a_link_makes_it_another(write, here):
    write("base.toml", BASE.replace('host = "p"', "host = 1"))
    write("deep/p.toml", 'extends = "../base.toml"\n')
    assert refused("deep/p.toml").message.startswith("base.toml:3: ")
    write("t.toml", "")
    write("deep/t.toml", "")
    assert find_topology("../t.toml", Path("deep/../t.toml")) == Path("t.toml")
    Path("deep/inner").mkdir()
    Path("short").symlink_to(here / "deep/inner", target_is_directory=True)
    assert find_topology("../t.toml", Path("short/../t.toml")) == Path("short/../t.toml")


def test_a_mistake_over_the_base_names_the_profile_and_its_line(write):
    write("base.toml", BASE)
    write("p.toml", 'extends = "base.toml"\n[servers]\nparis.port = 0\n')
    assert refused("p.toml").message == (
        "p.toml:3: servers.paris.port: port 0 is not between 1 and 65535"
    )
    write("p.toml", 'extends = "base.toml"\n[axes]\nstreams = [\n1,\n[],\n]\n')
    assert refused("p.toml").message == (
        "p.toml:5: axes.streams[1]: must be a string, a number, true or false"
    )


def test_a_mistake_found_when_planning_names_the_base(write, plan):
    write("base.toml", BASE.replace('omit = "1s"', 'omit = "1m"'))
    with pytest.raises(ProfileError, match=r"^base\.toml:6: defaults\.omit: \"1m\" could be"):
        plan('extends = "base.toml"\n')
    write("base.toml", BASE.replace("[1, 2, 4, 8]", "[1, 2, 4, 1000]"))
    with pytest.raises(ProfileError, match=r"^base\.toml:11: axes\.streams\[3\]: must be at most"):
        plan('extends = "base.toml"\n')


def test_a_base_that_comes_with_benchctl_is_named_and_a_file_beside_the_profile_comes_first(write):
    write("p.toml", 'extends = "quickstart"\n[run]\nrepeats = 7\n')
    document = load_profile("p.toml")
    assert document.sources[1].path == find_profile("quickstart")
    assert document.model.run.repeats == 7
    write("quickstart", '[flows.main]\nbackend = "ping"\n')
    assert load_profile("p.toml").sources[1].path == Path("quickstart")
    write("p.toml", 'extends = "quickstrat"\n')
    assert refused("p.toml").hint == 'did you mean "quickstart"?'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends = 1", "p.toml:1: extends: must be the path or the name of a profile, in quotes"),
        ('extends = "no.toml"', 'p.toml:1: extends: no file "no.toml" beside this profile'),
        ('extends = "."', 'p.toml:1: extends: no file "." beside this profile'),
        ('extends = "a\\u0000"', 'p.toml:1: extends: no file "a\\u0000" beside this profile'),
        (
            f'extends = "{"x" * 300}"',
            f'p.toml:1: extends: no file "{"x" * 300}" beside this profile',
        ),
        (
            'extends = "p.toml"',
            'p.toml:1: extends: "p.toml" extends this profile: the two form a cycle',
        ),
        (
            'extends = "q.toml"',
            'q.toml:2: extends: "./p.toml" extends this profile: the two form a cycle',
        ),
    ],
)
def test_a_base_that_cannot_be_is_refused(write, text, message):
    write("p.toml", f"{text}\n")
    write("q.toml", '\nextends = "./p.toml"\n')
    assert refused("p.toml").message == message


def test_a_base_that_is_not_toml_names_itself(write):
    write("p.toml", 'extends = "q.toml"\n')
    write("q.toml", "a = 1\nb\n")
    assert refused("p.toml").message.startswith("q.toml:2: invalid TOML: ")


# --- finding ---------------------------------------------------------------------------------


def test_a_file_goes_before_a_profile_that_comes_with_benchctl(write, here):
    assert find_profile("quickstart") == packaged_profiles() / "quickstart.toml"
    assert find_profile("quickstart.toml") == packaged_profiles() / "quickstart.toml"
    write("quickstart.toml", "")
    assert str(find_profile("quickstart.toml")) == "quickstart.toml"


def test_a_bare_name_of_ours_is_no_file_that_merely_lies_here(write, here):
    write("quickstart", "")
    write("mine", "")
    assert find_profile("quickstart") == packaged_profiles() / "quickstart.toml"
    assert str(find_profile("./quickstart")) == "quickstart"
    assert str(find_profile("mine")) == "mine"


def test_a_profile_in_a_folder_is_found_by_its_path(here):
    for name in ("public/c3-streams", "profiles/public/c3-streams.toml"):
        assert find_profile(name) == packaged_profiles() / "public" / "c3-streams.toml"


def test_a_profile_that_is_not_there_is_named_with_the_nearest(here):
    error = refused("quikstart")
    assert error.message == (
        "quikstart: no such profile: not a file, and not included with benchctl"
    )
    assert error.hint == 'did you mean "quickstart"?'
    assert refused("\n").message.startswith('"\\n": no such profile')
    assert refused("x" * 300).message.startswith("xxx")


def test_topologies_are_no_profiles(here):
    hint = refused("+").hint
    assert hint.startswith("available: ")
    assert "labs" not in hint
