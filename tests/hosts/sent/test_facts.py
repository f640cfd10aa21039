import json
import sys

import pytest

from benchctl.hosts.sent import facts


def test_facts_are_json_and_know_this_machine():
    about = json.loads(json.dumps(facts.collect()))
    assert about["cpu"]["count"] >= 1
    assert about["kernel"]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells more")
def test_linux_tells_tcp_settings_interfaces_and_clock():
    about = facts.collect()
    assert about["sysctls"]["tcp_congestion_control"] in (
        about["sysctls"]["tcp_available_congestion_control"].split()
    )
    assert about["interfaces"]["lo"]["mtu"] >= 1280
    assert about["interfaces"]["lo"]["offloads"]["scatter_gather"] in (True, False)
    assert about["clock"]["synchronized"] in (True, False)
    assert about["clock"]["max_error_s"] >= 0
