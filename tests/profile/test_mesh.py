"""An axis over every ordered pair of hosts."""

import pytest

MESH = """\
[hosts]
a = { ssh = "a" }
b-1 = { ssh = "b" }
c = { address = "::1" }
[flows.main]
backend = "stream"
[flows.beside]
backend = "stream"
[axes]
pair = { mesh = ["a", "b-1", "c"] }
"""


def pairs(trials):
    return [(trial.point["pair"], trial.flows[0].source, trial.flows[0].to) for trial in trials]


def test_every_ordered_pair_is_a_value_that_sets_both_ends_of_all_flows(plan):
    made = list(plan(MESH))
    assert pairs(made) == [
        ("a:b-1", "a", "b-1"), ("a:c", "a", "c"), ("b-1:a", "b-1", "a"),
        ("b-1:c", "b-1", "c"), ("c:a", "c", "a"), ("c:b-1", "c", "b-1"),
    ]  # fmt: skip
    assert all((flow.source, flow.to) == (trial.flows[0].source, trial.flows[0].to)
               for trial in made for flow in trial.flows)  # fmt: skip


def test_pairs_are_selected_and_excluded_by_their_labels(plan):
    assert pairs(plan(MESH, only=["pair=a:c,c:a"])) == [("a:c", "a", "c"), ("c:a", "c", "a")]
    assert pairs(plan(MESH, "pair=c:a")) == [("c:a", "c", "a")]
    assert len(pairs(plan(f'{MESH}[[exclude]]\npair = ["a:c"]\n'))) == 5
    assert len(pairs(plan(MESH, 'axes.pair.mesh=["a", "c"]'))) == 2


@pytest.mark.parametrize(
    ("mesh", "message", "hint"),
    [
        ('{ mesh = ["a"] }', "10: axes.pair: a mesh needs at least two hosts", ""),
        ('{ mesh = ["a", "a"] }', '10: axes.pair: "a" is twice in its mesh', ""),
        ('{ mesh = ["a", "c"], values = [1] }', "10: axes.pair: give either values or mesh", ""),
        ('{ sets = "to" }', "10: axes.pair: give either values or mesh", ""),
        ('{ mesh = ["a", "c"], sets = "to" }',
         "10: axes.pair: a mesh sets from and to, and nothing else", ""),
        ('{ mesh = ["a", "cc"] }', '10: axes.pair.to: no host or server "cc"',
         'did you mean "c"?'),
        ('{ mesh = "a" }', "10: axes.pair.mesh: must be a list, in [ ]", ""),
    ],
)  # fmt: skip
def test_a_mesh_that_is_none_is_refused_with_its_line(refusal, mesh, message, hint):
    error = refusal(MESH.replace('{ mesh = ["a", "b-1", "c"] }', mesh))
    assert (error.message, error.hint) == (f"p.toml:{message}", hint)
