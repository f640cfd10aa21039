"""Every shipped profile describes itself, and plans with the real backends."""

from functools import cache

import pytest

from benchctl.backends import installed
from benchctl.engine.prepare.planning import planned
from benchctl.plan.plan import make_plan
from benchctl.profile.find import packaged_profiles
from benchctl.profile.load import load_profile

ROOT = packaged_profiles()
SHIPPED = sorted(
    path.relative_to(ROOT).with_suffix("").as_posix()
    for path in ROOT.rglob("*.toml")
    if path.parent.name != "labs"
)
REPRODUCED = [
    name
    for name in SHIPPED
    if name.startswith(("portfolio/", "congestion-control/", "long-path/", "tcp-options/"))
]
TRANSFERS = {"tcp-options/e2-packets"}
"""Those that end after so many bytes."""


@cache
def plan(name, *settings, only=()):
    document = load_profile(name, settings)
    if document.topology is not None:
        return planned(name, settings, only, None, yes=False).plan
    # Without a lab a plan would look for devices that only some machines have.
    return make_plan(document, installed(), only=only)


@pytest.mark.parametrize("name", SHIPPED)
def test_it_plans(name):
    assert len(list(plan(name))) == len(plan(name)) > 0
    assert plan(name).document.model.title


@pytest.mark.parametrize("name", REPRODUCED)
def test_its_head_says_what_it_reproduces_and_what_theory_expects(name):
    head, _, _ = (ROOT / f"{name}.toml").read_text(encoding="utf-8").partition("\n\n")
    assert "# Reproduces: " in head
    assert "# Theory" in head
    assert all(line.startswith("#") for line in head.splitlines())


@pytest.mark.parametrize("name", REPRODUCED)
def test_one_setting_shortens_every_flow(name):
    if name in TRANSFERS:
        [short], [whole] = plan(name, "bytes=1MB"), plan(name)
        assert short.duration_s < whole.duration_s / 2
        return
    for trial in plan(name, "duration=2s"):
        assert trial.duration_s == 2 + max(flow.delay_s for flow in trial.flows)


@pytest.mark.parametrize("name", REPRODUCED)
def test_every_reported_figure_stands_at_a_point_that_is_measured(name):
    points = [{value.axis: value.shown for value in point} for point in plan(name).points]
    for reported in plan(name).reported:
        assert any(reported.where.items() <= point.items() for point in points)
