import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.plan.matrix import build_matrix
from benchctl.profile.load import Document
from benchctl.profile.model import Profile
from benchctl.profile.overrides import Overrides
from benchctl.toml.source import TomlSource

VALUES = ["1", 1, "b", 2.5, "c", 7, False]
values = st.lists(st.sampled_from(VALUES), min_size=1, max_size=4, unique=True)
axis_names = st.sampled_from(["a", "b.c", "d", "lab.x"])
axes = st.dictionaries(axis_names, values, max_size=4)


def matrix_of(data):
    profile = Profile.model_validate({"flows": {"main": {"backend": "x"}}, **data})
    settings = Overrides(Path("--set"), "", data, {})
    return build_matrix(Document(profile, (TomlSource(Path("p.toml"), "", data, {}),), settings))


def shown(points):
    return [{value.axis: value.shown for value in point} for point in points]


@given(axes)
def test_the_product_has_every_combination_once_the_last_axis_fastest(axes):
    matrix = matrix_of({"axes": axes})
    expected = [dict(zip(axes, one, strict=True)) for one in itertools.product(*axes.values())]
    assert shown(matrix.points()) == expected
    assert matrix.size == len(expected)
    assert matrix.axes == tuple(axes)


@given(axes, st.data())
def test_a_zipped_group_is_one_dimension_after_the_axes(axes, data):
    length = data.draw(st.integers(1, 4))
    columns = st.lists(st.sampled_from(VALUES), min_size=length, max_size=length, unique=True)
    group = data.draw(st.dictionaries(st.sampled_from(["x", "y", "z"]), columns, min_size=1))
    matrix = matrix_of({"axes": axes, "zip": [group]})
    steps = [dict(zip(group, step, strict=True)) for step in zip(*group.values(), strict=True)]
    products = [dict(zip(axes, one, strict=True)) for one in itertools.product(*axes.values())]
    assert shown(matrix.points()) == [{**p, **s} for p, s in itertools.product(products, steps)]


@given(axes, st.data())
def test_exclude_removes_exactly_what_its_rules_say(axes, data):
    rules = []
    for _ in range(data.draw(st.integers(0, 3)) if axes else 0):
        chosen = data.draw(st.sets(st.sampled_from(sorted(axes)), min_size=1))
        rules.append(
            {
                axis: data.draw(
                    st.sampled_from(axes[axis])
                    | st.lists(st.sampled_from(axes[axis]), min_size=1, unique=True)
                )
                for axis in chosen
            }
        )
    matrix = matrix_of({"axes": axes, "exclude": rules})
    everything = shown(matrix_of({"axes": axes}).points())

    def matches(rule, point):
        return all(
            point[axis] in (one if isinstance(one, list) else [one]) for axis, one in rule.items()
        )

    kept = [point for point in everything if not any(matches(rule, point) for rule in rules)]
    assert shown(matrix.points()) == kept


@given(axes.filter(bool), st.data())
def test_include_adds_points_at_the_end_and_none_twice(axes, data):
    entries = st.fixed_dictionaries(
        {}, optional={axis: st.sampled_from(["new", *known]) for axis, known in axes.items()}
    ).filter(bool)
    included = data.draw(
        st.lists(entries, max_size=3, unique_by=lambda entry: json.dumps(entry, sort_keys=True))
    )
    product = shown(matrix_of({"axes": axes}).points())
    if any(entry in product for entry in included):
        with pytest.raises(Exception, match="this point is already in the matrix"):
            matrix_of({"axes": axes, "include": included})
        return
    points = shown(matrix_of({"axes": axes, "include": included}).points())
    assert points == [*product, *included]
    assert len({json.dumps(point, sort_keys=True) for point in points}) == len(points)


def test_a_point_that_exclude_removed_may_be_included_again():
    axes = {"a": [1, 2], "b": [1, 2]}
    matrix = matrix_of(
        {"axes": axes, "exclude": [{"a": 2}], "include": [{"b": 2, "a": 2}, {"a": 3}]}
    )
    assert shown(matrix.points()) == [
        {"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2}, {"a": 3},
    ]  # fmt: skip
    assert list(shown(matrix.points())[2]) == ["a", "b"]  # in the order of the axes


def test_a_combination_that_a_zip_does_not_have_may_be_included():
    matrix = matrix_of({"zip": [{"a": [1, 2], "b": [1, 2]}], "include": [{"a": 1, "b": 2}]})
    assert shown(matrix.points()) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2}]


def test_without_axes_there_is_one_point():
    assert shown(matrix_of({}).points()) == [{}]


def sets(matrix):
    return [[(target, one) for target, one, _ in value.sets] for value in matrix.values()]


def test_an_axis_sets_what_it_is_named_after_or_what_it_says():
    assert sets(matrix_of({"axes": {"streams": [4]}})) == [[("streams", 4)]]
    assert sets(matrix_of({"axes": {"server": {"sets": "to", "values": ["p"]}}})) == [[("to", "p")]]
    assert sets(
        matrix_of({"axes": {"w": {"sets": ["a.window", "b.window"], "values": ["1M"]}}})
    ) == [[("a.window", "1M"), ("b.window", "1M")]]


def test_a_labelled_value_sets_what_it_holds_dotted_or_nested():
    axes = {"load": [{"label": "x", "streams": 8, "main.omit": "1s", "lab": {"links": {"l": 1}}}]}
    (value,) = matrix_of({"axes": axes}).values()
    assert value.shown == "x"
    assert value.sets == (
        ("streams", 8, ("axes", "load", "values", 0, "streams")),
        ("main.omit", "1s", ("axes", "load", "values", 0, "main.omit")),
        ("lab.links.l", 1, ("axes", "load", "values", 0, "lab", "links", "l")),
    )
    (value,) = matrix_of({"axes": {"load": [{"label": "as it is"}]}}).values()
    assert value.sets == ()


# --- --only ----------------------------------------------------------------------------------


@given(axes.filter(bool), st.data())
def test_only_keeps_the_points_with_one_of_the_values(axes, data):
    axis = data.draw(st.sampled_from(sorted(axes)))
    wanted = data.draw(st.lists(st.sampled_from(axes[axis]), min_size=1, unique=True))
    texts = [str(one).lower() for one in wanted]
    matrix = matrix_of({"axes": axes})
    kept = matrix.only([f"{axis}={','.join(texts)}"])
    same = [one for one in axes[axis] if str(one).lower() in texts]
    if len({str(one) for one in same}) < len(same):
        return  # "1" and 1 in one axis look alike on the command line
    assert shown(kept.points()) == [p for p in shown(matrix.points()) if p[axis] in wanted]
    assert kept.size == len(list(kept.points()))


def test_only_may_be_given_more_than_once_and_reaches_zips_and_included_points():
    matrix = matrix_of(
        {
            "axes": {"s": [1, 2]},
            "zip": [{"a": ["x", "y"], "b": [True, False]}],
            "include": [{"s": 3, "a": "x"}, {"s": 4}],
        }
    )
    kept = matrix.only(["a=x"])
    assert shown(kept.points()) == [
        {"s": 1, "a": "x", "b": True}, {"s": 2, "a": "x", "b": True}, {"s": 3, "a": "x"},
    ]  # fmt: skip
    assert shown(matrix.only(["a=x", "s=3,1"]).points()) == [
        {"s": 1, "a": "x", "b": True},
        {"s": 3, "a": "x"},
    ]
    assert shown(matrix.only(["b=false", "s=2"]).points()) == [{"s": 2, "a": "y", "b": False}]
    assert list(matrix.only(["b=false", "s=4"]).points()) == []
    assert shown(matrix.only(["s=3", "s=4,3"]).points()) == [{"s": 3, "a": "x"}]


def test_a_value_with_a_comma_is_chosen_whole():
    matrix = matrix_of({"axes": {"a": ["x,y", "x", "y"]}})
    assert shown(matrix.only(["a=x,y"]).points()) == [{"a": "x,y"}]
    assert shown(matrix.only(["a=y,x"]).points()) == [{"a": "x"}, {"a": "y"}]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a", "--only a: expected AXIS=VALUE", "for example: --only streams=4"),
        ("sever=x", '--only sever=x: no axis "sever"', 'did you mean "server"?'),
        ("b=1", '--only b=1: no axis "b"', "axes are: server"),
        ("server=pari", '--only server=pari: axis "server" has no value "pari"',
         'did you mean "paris"?'),
        ("server=", '--only server=: axis "server" has no value ""', "values are: paris, 4"),
    ],
)  # fmt: skip
def test_an_only_that_names_nothing_is_refused(text, message, hint):
    with pytest.raises(UsageError) as caught:
        matrix_of({"axes": {"server": ["paris", 4]}}).only([text])
    assert (caught.value.message, caught.value.hint) == (message, hint)
