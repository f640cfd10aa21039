"""What was set for a run becomes a profile of its own."""

import pytest

from benchctl.errors import UsageError
from benchctl.profile.derive import copied_profile, derived_profile, lasting_name
from benchctl.profile.find import find_topology, profiles_in, shipped_profiles
from benchctl.profile.load import load_profile

BASE = """title = "Base"
[defaults]
duration = "20s"
[servers.paris]
host = "192.0.2.1"
[flows.main]
backend = "iperf3"
to = "paris"
[flows.other]
backend = "iperf3"
duration = "3s"
[axes]
server = { sets = "main.to", values = ["paris", "local"] }
streams = [1, { label = "many", streams = 8 }]
"""


@pytest.mark.parametrize(
    "sets",
    [
        ["streams=4"], ["streams=many,1"], ["server=local"], ["duration=5s"], ["run.repeats=7"],
        ["servers.paris.host=192.0.2.7", "servers.paris.port=9200-9240"],
        ["main.window=64K"], ["flows.main.to=local", 'run.order="shuffled"'],
    ],
)  # fmt: skip
def test_a_derived_profile_says_what_the_options_said(tmp_path, sets):
    (tmp_path / "base.toml").write_text(BASE)
    asked = load_profile(str(tmp_path / "base.toml"), sets)
    new = tmp_path / "new.toml"
    new.write_text(derived_profile(asked, "base.toml"))
    found = load_profile(str(new))
    by_option, written = asked.model.model_dump(), found.model.model_dump()
    # Targets are no keys of the file that was asked with options: the profile has them as keys.
    for key, value in asked.overrides.targets.items():
        for name, flow in by_option["flows"].items():
            if key[0] in (name, "duration") and (len(key) == 2 or name == "other"):
                flow[key[-1]] = value
        if key == ("duration",):
            by_option["defaults"]["duration"] = value
    for one in (by_option, written):
        del one["title"], one["extends"]
    assert written == by_option


def test_a_derived_profile_without_the_lab_of_its_base_measures_the_real_network(tmp_path):
    (tmp_path / "base.toml").write_text(f'{BASE}[lab]\ntopology = "pair"\nverify = false\n')
    new = tmp_path / "new.toml"
    new.write_text(
        derived_profile(load_profile(str(tmp_path / "base.toml")), "base.toml", lab=False)
    )
    assert load_profile(str(new)).model.lab is None
    again = load_profile(str(new), ["lab.topology=pair"])
    assert again.model.lab.topology == "pair"


def test_what_a_profile_has_no_place_for_is_refused(tmp_path):
    (tmp_path / "base.toml").write_text(BASE)
    asked = load_profile(str(tmp_path / "base.toml"), ['flows=["main"]'])
    with pytest.raises(UsageError, match="no place for flows"):
        derived_profile(asked, "base.toml")


@pytest.mark.parametrize("name", shipped_profiles())
def test_a_copy_of_a_shipped_profile_says_elsewhere_what_it_says_at_its_place(name, tmp_path):
    shipped = shipped_profiles()[name]
    (tmp_path / "copy.toml").write_text(copied_profile(shipped))
    here = load_profile(str(tmp_path / "copy.toml"))
    there = load_profile(str(shipped))
    labs = [one.model.lab.topology for one in (here, there) if one.model.lab is not None]
    assert len({find_topology(lab, shipped.parent / lab).resolve() for lab in labs}) <= 1
    same = {"lab": None, "extends": None}
    assert here.model.model_copy(update=same) == there.model.model_copy(update=same)


def test_a_profile_that_comes_with_benchctl_is_named_wherever_it_is_installed(tmp_path):
    for name, file in shipped_profiles().items():
        assert lasting_name(file) == name
        assert f'"{file.parent}' not in copied_profile(file)
    own = tmp_path / "own.toml"
    assert lasting_name(own) == str(own.resolve())


def test_topologies_and_other_files_in_toml_are_no_profiles(tmp_path):
    for name, text in {
        "mine": '[flows.a]\nbackend = "ping"\n', "mine-too": 'extends = "mine.toml"\n',
        "begun": "", "broken": "[flows", "lab": "[hosts]\na = {}\n[links]\nl = {}\n",
        "pyproject": "[project]\n", "profiles/labs/far": "[links]\n",
        "profiles/deep/one": '[flows.a]\nbackend = "ping"\n',
    }.items():  # fmt: skip
        path = tmp_path / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert [*profiles_in(tmp_path)] == ["begun", "broken", "mine-too", "mine", "deep/one"]
