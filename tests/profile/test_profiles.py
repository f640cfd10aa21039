"""The bundled profiles can be planned with the bundled backends."""

import re

import pytest

from benchctl.backends import installed
from benchctl.lab.topology.topology import load_topology
from benchctl.plan.plan import make_plan
from benchctl.profile.find import packaged_profiles
from benchctl.profile.load import load_profile

ROOT = packaged_profiles()
NAMES = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix()
    for path in ROOT.rglob("*.toml")
    if path.parent.name != "labs"
)
PUBLIC = ["public-servers", *(name for name in NAMES if name.startswith("public/"))]
TWIN = load_topology(ROOT / "labs" / "public-internet.toml")


def plan(name, *settings):
    document = load_profile(name, settings)
    if document.topology is None:
        return make_plan(document, installed())
    topology = load_topology(document.topology)
    labels = {end.label for host in topology.hosts for end in topology.interfaces(host)}
    return make_plan(document, installed(), hosts=topology.hosts, interfaces=labels)


@pytest.mark.parametrize("name", NAMES)
def test_every_profile_is_planned_and_has_a_title_and_a_head(name):
    made = plan(name)
    assert len(made) > 0
    assert made.document.model.title
    assert made.document.sources[0].text.startswith("# ")


@pytest.mark.parametrize(
    ("name", "trials"),
    [
        ("quickstart", 12),
        ("public-servers", 8),
        ("public/c1-wired-wireless", 54),
        ("public/c3-streams", 11),
        ("public/c4-directions", 48),
        ("public/c5-windows", 7),
    ],
)
def test_a_profile_has_as_many_trials_as_it_should(name, trials):
    assert len(plan(name)) == trials


def test_quickstart_takes_seconds_and_needs_nothing_but_python():
    made = plan("quickstart")
    assert made.duration_s <= 10
    assert {(flow.backend, flow.source, flow.to) for flow in made.routes} == {
        ("simpleperf", "local", "local")
    }
    assert made.varying == ("direction", "streams")


@pytest.mark.parametrize("name", PUBLIC)
def test_a_profile_of_public_servers_runs_in_their_twin_too(name):
    # Each is in the same lab, unless its head names another.
    own = re.search(r"--lab ([\w-]+)[,.]", load_profile(name).sources[0].text)
    twin = load_topology(ROOT / "labs" / f"{own[1]}.toml") if own else TWIN
    made = plan(name, f"lab.topology={twin.path}")
    for flow in made.routes:
        assert flow.to in twin.hosts
        labels = {end.label for node in twin.hosts for end in twin.interfaces(node)}
        assert flow.interface is None or flow.interface in labels


def test_the_twin_knows_the_servers_by_their_real_names():
    aliases = {alias for node in TWIN.nodes.values() for alias in node.aliases}
    assert {server.host for server in plan("public-servers").document.model.servers.values()} <= (
        aliases
    )


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.endswith("base")])
def test_the_head_says_what_was_reported_and_the_figures_agree(name):
    document = load_profile(name)
    head = document.sources[0].text.split("\n\n")[0]
    assert all(word in head for word in ("Reproduces:", "Reported:", "Theory:"))
    figures = [figure for table in document.model.reported for figure in table.figures.values()]
    assert figures
    said = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", head)}
    if name != "public/c1-wired-wireless":  # its head names the two of 60 s only
        assert {float(re.match(r"[0-9.]+", figure)[0]) for figure in figures} <= said
