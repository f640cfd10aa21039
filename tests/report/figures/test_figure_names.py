"""Names of lines and labels: what all have in common is said once."""

import pytest

from benchctl.report.figures.parts import without_common


@pytest.mark.parametrize(
    ("names", "cut", "note"),
    [
        (
            ["host-01.north.example.net", "host-02.north.example.net"], ["01", "02"],
            'all names begin with "host-" and end with ".north.example.net"',
        ),
        (
            ["a-measurement-host-in-paris", "a-measurement-host-in-oslo"], ["paris", "oslo"],
            'all names begin with "a-measurement-host-in-"',
        ),
        (["fra.pop.example.net/eth0", "lhr.pop.example.net/eth0"], ["fra", "lhr"],
         'all names end with ".pop.example.net/eth0"'),
    ],
)  # fmt: skip
def test_what_all_long_names_have_in_common_is_said_once(names, cut, note):
    assert without_common(names) == (cut, [note])


@pytest.mark.parametrize(
    "names",
    [
        ["paris", "pretoria"],
        ["one-name-that-is-very-long.example.net"],
        ["the-same-very-long-name.net", "the-same-very-long-name.net"],
        # Words are not cut, and no name may be left empty.
        ["verylongnamewithoutanyend1", "verylongnamewithoutanyend2"],
        ["host.pop.north.example.net/", "host.pop.north.example.net/more"],
    ],
)
def test_other_names_stay_as_they_are(names):
    assert without_common(names) == (names, [])
