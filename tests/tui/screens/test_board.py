"""The board of trials that run side by side: hosts, what each does, and the pairs that fill."""

import re
from contextlib import closing

import pytest
from report.mesh_run import mesh_run
from tui.driving import (
    Clock,
    double_click,
    drive,
    notices,
    open_live,
    open_page,
    open_replay,
    press,
    settle,
    shown,
)
from tui.made_mesh import MadeMesh
from tui.made_runs import BEGIN

from benchctl.run.status import Status
from benchctl.tui.model.feed import RunReader

NOW = BEGIN + 12.0


def some_of(made):
    """Two pairs were measured, one failed, two run, and the others are to come."""
    made.end("h2:h1", 94.1e6)
    made.end("h3:h4", 9.4e6)
    made.end("h4:h1")
    made.begin("h1:h2", at_s=11.0)
    made.begin("h4:h3", at_s=11.5)


@pytest.fixture
def mesh_of(store, alive):
    made = []

    def make(hosts, **options):
        made.append(MadeMesh(store, hosts, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def mesh(mesh_of):
    made = mesh_of(4)
    some_of(made)
    return made.id


def rows(text):
    """Return the rows of the board, below its headings."""
    lines = text.splitlines()
    head = next(n for n, line in enumerate(lines) if line.lstrip(" 1").startswith("from "))
    return lines[head : head + 1 + lines[head + 1 :].index(next(filter(_ends, lines[head + 1 :])))]


def _ends(line):
    return not line.strip().lstrip("0123456789 ").startswith("h")


def test_hosts_say_what_they_do_and_pairs_what_they_came_to(store, mesh):
    async def script(pilot):
        assert [line.split() for line in rows(shown(pilot))] == [
            ["from", "h1", "h2", "h3", "h4"],
            ["h1", "▶", "12", "to", "h2", "▶", "·", "·"],
            ["h2", "▶", "12", "from", "h1", "▇", "94.1", "·", "·"],
            ["h3", "▶", "1", "from", "h4", "·", "·", "▁", "9.40"],
            ["h4", "▶", "1", "to", "h3", "✗", "·", "▶"],
        ]
        assert "throughput, Mbit/s: from ↓ to →   h1 to h2: trial 12  ▶ running" in shown(pilot)

    drive(store, open_live(store, mesh, Clock(NOW)), script, clock=Clock(NOW))


def test_a_trial_is_picked_with_the_cursor_and_watched(store, mesh):
    async def script(pilot):
        text = await press(pilot, "down", "left")
        assert "h2 to h1: 94.1  trial 9  ✓ ok" in text
        assert "looking at trial" not in text
        assert "looking at trial 9" in await press(pilot, "enter")
        assert "h2 to h3: trial 8  · planned" in await press(pilot, "right", "right")
        await press(pilot, "enter")
        assert "no trial of this pair has begun yet" in notices(pilot)
        assert "looking at trial 9" in shown(pilot)
        text = await press(pilot, "f")
        assert "looking at trial" not in text
        assert "h1 to h2: trial 12  ▶ running" in text

    drive(store, open_live(store, mesh, Clock(NOW)), script, clock=Clock(NOW))


def test_a_click_goes_to_a_pair_and_a_second_one_watches_it(store, mesh):
    async def script(pilot):
        lines = shown(pilot).splitlines()
        row = next(n for n, line in enumerate(lines) if line.strip().startswith("h2"))
        at = (lines[row].index("94.1"), row)
        await pilot.click(offset=at)
        await settle(pilot)
        assert "h2 to h1: 94.1  trial 9  ✓ ok" in shown(pilot)
        await double_click(pilot, None, at)
        assert "looking at trial 9" in shown(pilot)

    drive(store, open_live(store, mesh, Clock(NOW)), script, clock=Clock(NOW))


@pytest.mark.parametrize(
    ("hosts", "size"),
    [(4, (80, 24)), (60, (80, 24)), (8, (120, 40)), (20, (120, 40)), (20, (200, 60)),
     (40, (200, 60))],
)  # fmt: skip
def test_as_many_hosts_are_seen_as_there_is_room_for(store, mesh_of, hosts, size):
    made = mesh_of(hosts)
    some_of(made)

    async def script(pilot):
        text = shown(pilot)
        head, *seen = rows(text)
        assert len(seen) == hosts or f"1-{len(seen)} of {hosts}" in head
        assert len(seen) >= min(hosts, size[1] * 2 // 5)
        assert "no samples" in text  # the plots have room below
        last = rows(await press(pilot, *["end"], *["right"] * hosts))
        assert f"h{hosts}" in last[-1]
        assert f"h{hosts} to h{hosts}: not measured" in shown(pilot)

    drive(store, open_live(store, made.id, Clock(NOW)), script, clock=Clock(NOW), size=size)


def test_a_replay_has_the_board_of_its_moment(store, mesh):
    async def script(pilot):
        assert "94.1" not in shown(pilot)
        assert "94.1" in await press(pilot, "l", "l", "l", "l", "right", "l")

    drive(store, open_replay(store, mesh, Clock(NOW), 8.0), script, clock=Clock(NOW))


def test_a_run_of_one_trial_at_a_time_has_no_board(store, mesh_of):
    made = mesh_of(3, parallel=False)
    made.begin("h2:h1")

    async def script(pilot):
        seen = {shown(pilot), *[await press(pilot, "l") for _ in range(6)]}
        assert not any("from ↓ to →" in text for text in seen)

    drive(store, open_live(store, made.id, Clock(NOW)), script, clock=Clock(NOW), size=(120, 40))


def board_of(store, run_id):
    with closing(RunReader(store, run_id)) as feed:
        while feed.poll(1.0):
            pass
        return feed.board


def test_data_that_are_received_go_from_the_server(store, mesh_of):
    made = mesh_of(3, direction="receive")
    made.end("h1:h2", 5e6)
    board = board_of(store, made.id)
    assert board.hosts == ["h1", "h2", "h3"]
    assert board.at(NOW)["h2", "h1"] == (Status.OK, 5e6)
    assert board.at(NOW)["h1", "h2"] == (Status.PLANNED, None)


def test_a_pair_has_the_mean_of_its_repeats_and_the_state_of_the_latest(store, mesh_of):
    made = mesh_of(3, repeats=3)
    made.end("h1:h2", 4e6)
    made.end("h1:h2", 6e6, repeat=2, at_s=20.0)
    made.end("h2:h3", 4e6)
    made.end("h2:h3", repeat=2, at_s=20.0)
    made.begin("h1:h2", repeat=3, at_s=40.0)
    board = board_of(store, made.id)
    assert board.at(BEGIN + 12)["h1", "h2"] == (Status.OK, 4e6)
    assert board.at(BEGIN + 35)["h1", "h2"] == (Status.OK, 5e6)
    assert board.at(BEGIN + 35)["h2", "h3"] == (Status.FAILED, 4e6)
    assert board.at(BEGIN + 45)["h1", "h2"] == (Status.RUNNING, 5e6)
    first, second, third = board.positions["h1", "h2"]
    assert board.trial_at(("h1", "h2"), BEGIN + 45, after=-1) == third
    assert board.trial_at(("h1", "h2"), BEGIN + 45, after=third) == second
    assert board.trial_at(("h1", "h2"), BEGIN + 45, after=first) == third


def test_two_runs_of_a_mesh_are_compared_as_a_matrix_whose_pairs_are_the_rows_below(store):
    mesh_run(store, repeats=3, hosts="abcd")
    mesh_run(store, repeats=3, hosts="abcd", times=lambda number: {2: 0.5}.get(number, 1.0))

    async def script(pilot):
        text = shown(pilot)
        assert "change of throughput of main, %: from ↓ to →" in text
        assert re.search(r" a +▼1 +=2 += \+0\.0 +▼ -50 += \+0\.0", text)
        assert "throughput of main at pair=a:b" in text
        assert "throughput of main at pair=a:c" in await press(pilot, "down")
        # The keys go to the matrix: a row down, over the pair of a host with itself.
        assert "throughput of main at pair=b:c" in await press(pilot, "shift+tab", "down")
        assert "throughput of main at pair=b:c" in await press(pilot, "left")
        assert "throughput of main at pair=b:a" in await press(pilot, "left")

    drive(store, open_page(store, "compare", 1, 2), script)


def test_runs_of_few_pairs_are_compared_without_a_matrix(store):
    mesh_run(store, hosts="abcdef", away="bcde")
    mesh_run(store, hosts="abcdef", away="bcde")

    async def script(pilot):
        assert "from ↓ to →" not in shown(pilot)

    drive(store, open_page(store, "compare", 1, 2), script)
