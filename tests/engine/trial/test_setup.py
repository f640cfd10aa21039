"""How long before its common start the clients of a trial are started."""

from types import SimpleNamespace

import pytest

from benchctl.engine.trial.setup import LEAST_LEAD_S, START_LEAD_S, lead_s


def setup_of(*, waits=False, delay_s=0.0, reach=None):
    host = SimpleNamespace(reach=reach)
    plan = SimpleNamespace(delay_s=delay_s)
    flow = SimpleNamespace(plan=plan)
    return SimpleNamespace(waits=waits, expected={}, hosts=[host], flow=flow)


@pytest.mark.parametrize(
    ("flows", "expected_s"),
    [
        ([{}], 0.0),
        ([{}, {}], START_LEAD_S),
        ([{"waits": True}, {}], START_LEAD_S),
        ([{"waits": True}, {"waits": True, "delay_s": 9.0}], 2 * START_LEAD_S),
        # Its own delay is time to get ready, but for what the others need.
        ([{"waits": True, "delay_s": 9.0}, {}], LEAST_LEAD_S),
        ([{"waits": True, "delay_s": 0.1}, {}], START_LEAD_S - 0.1),
        # A gate on another machine opens later.
        ([{"waits": True, "delay_s": 9.0}, {"reach": "paris"}], START_LEAD_S),
    ],
)
def test_clients_are_started_as_early_as_the_first_of_them_needs(flows, expected_s):
    assert lead_s(setup_of(**flow) for flow in flows) == pytest.approx(expected_s)
