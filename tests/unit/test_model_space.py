"""Limits on groups and parents as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsecv_mio import model_space
from sparsecv_mio.errors import BadInput
from sparsecv_mio.model_space import (
    NONE,
    AtMost,
    Parents,
    Restrictions,
    Term,
    parse_hierarchy,
    parse_limits,
    parse_names,
    products,
)
from sparsecv_mio.targets import Loss


def test_what_may_be_given() -> None:
    assert parse_limits(["2:a,b", (1, [0, "c"])]) == (AtMost(2, ("a", "b")), AtMost(1, ("0", "c")))
    assert parse_hierarchy(["a:b=a,b", "c=a|b"]) == (Parents("a:b", ("a", "b")), Parents("c", ("a", "b"), False))
    assert parse_names("a, 'b", "at_most") == ("a", "'b")
    assert parse_limits(()) == parse_hierarchy(()) == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"at_most": "a,b"}, "at_most: 'a,b' is not K:A,B"),
        ({"at_most": "-1:a"}, "at_most: -1 is out of range"),
        ({"at_most": "1:a,,b"}, "at_most: 'a,,b' is not a list"),
        ({"at_most": 3}, "at_most: 3 is neither a text nor a list; give"),
        ({"at_most": [("a", 1)]}, "at_most: .* is neither"),
        ({"hierarchy": "ab"}, "hierarchy: 'ab' is not one of strong, weak"),
        ({"hierarchy": "c=a,b|d"}, "hierarchy: .* is not one of"),
        ({"hierarchy": {"ab": []}}, "hierarchy: \\[\\] is not a list of features"),
        ({"hierarchy": 1}, "hierarchy: 1 is neither a text nor a list; give"),
        ({"nonnegative": 1.5}, "nonnegative: 1.5 is neither a feature"),
        ({"force_in": 1.5}, "force_in: 1.5 is neither a feature nor a list of features"),
        ({"force_in": [None]}, "force_in: None is neither the name nor the position of a feature; give one"),
        ({"at_most": "1:a,d"}, "at_most: 'd' is not a feature"),
        ({"hierarchy": "7=a,d"}, "hierarchy: 'd' is not a feature"),
        ({"hierarchy": "7=a,7"}, "hierarchy: feature '7' is its own parent"),
        ({"hierarchy": "strong"}, "hierarchy: no feature has the name of a product"),
        ({"nonnegative": "all", "nonpositive": "b"}, "nonnegative, nonpositive: feature 'b' is in both"),
        ({"force_in": "e"}, "force_in: 'e' is not a feature"),
        ({"force_in": ["c-d"]}, r"force_in: 'c-d' is not a feature \(did you mean 'c_d'\?\)"),
        ({"force_out": [4]}, "force_out: '4' is not a feature"),
        ({"force_in": "a", "force_out": ["b", "a"]}, "force_in, force_out: feature 'a' is in both"),
        ({"force_out": ["a", "b", "c_d", "7"]}, "force_out: no feature is left"),
    ],
)
def test_wrong_restrictions_are_refused_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{message}") as error:
        Restrictions(**given).resolve_names(["a", "b", "c_d", "7"])
    assert "\n" not in str(error.value)


def test_words_are_spelt_out_by_the_names_of_the_data() -> None:
    names = ["b", "a", "a*b", "all b"]
    found = Restrictions(hierarchy="weak", nonnegative="all", at_most=[(1, ["a", 0])]).resolve_names(names)
    assert found.hierarchy == (Parents("a*b", ("b", "a"), False),)
    assert found.nonnegative == tuple(names) and found.at_most == (AtMost(1, ("b", "a")),)
    assert found.resolve_names(names) == found
    assert found.side_constraints == ("at_most", "hierarchy", "nonnegative")


def test_a_column_of_words_stands_for_its_levels() -> None:
    names = ["age", "city=a", "city=b", "city=c", "sex=m", "city"]
    within = Restrictions(adjust=("age", "sex"), force_in=("city=b",)).resolve_names(names[:5])
    assert within.adjust == ("age", "sex=m") and within.force_in == ("city=b",)
    levels = Restrictions(adjust=("city",), nonnegative=("all",)).resolve_names(names[:5])
    assert levels.adjust == ("city=b", "city=c") and levels.force_out == ("city=a",)
    assert levels.nonnegative == ("age", "sex=m") and levels.resolve_names(names[:5]) == levels
    both = Restrictions(adjust=("city", "ward")).resolve_names([*names[:5], "ward=x", "ward=y"], constant=False)
    assert both.adjust == (*names[1:4], "ward=y") and both.force_out == ("ward=x",)
    for given, option in (({"force_in": "city=a"}, "force_in"), ({"force_out": "city"}, "force_out")):
        with pytest.raises(BadInput, match=f"adjust, {option}: column 'city=a' is in both"):
            Restrictions(adjust=("city",), **given).resolve_names(names[:5])  # type: ignore[arg-type]
    assert Restrictions(force_out=("city",)).resolve_names(names[:5]).force_out == ("city=a", "city=b", "city=c")
    assert Restrictions(force_out=("city",)).resolve_names(names).force_out == ("city",)
    with pytest.raises(BadInput, match="'city' is not a feature"):
        Restrictions(hierarchy=("city=age",)).resolve_names(names[:5])


def test_products_by_their_names() -> None:
    names = ["a", "b", "c", "a:b", "b:c", "a:b:c", "a^2", "a^2 b", "d:e"]
    found = {one.feature: one.parents for one in products(names, True)}
    assert found == {
        "a:b": ("a", "b"), "b:c": ("b", "c"), "a:b:c": ("a:b", "b:c"), "a^2": ("a",), "a^2 b": ("a:b", "a^2"),
    }  # fmt: skip


def test_digits_are_those_from_0_to_9() -> None:
    for text in ("²:a", "١:a", "1_0:a"):
        with pytest.raises(BadInput, match="is not K:A,B"):
            parse_limits(text)
    assert products(["a", "a^²"], every=True) == ()


NAMES = ("a", "b", "c d", "7")


def test_names_positions_and_numbers_mean_the_same_columns() -> None:
    assert Restrictions(["c d", "0"], 1).resolve_names(NAMES) == Restrictions(("a", "c d"), ("b",))  # type: ignore[arg-type]
    assert Restrictions(np.int64(2)).resolve_names(NAMES).force_in == ("c d",)  # type: ignore[arg-type]
    assert Restrictions("7").resolve_names(NAMES).force_in == ("7",)  # type: ignore[arg-type]
    assert Restrictions(("a", "a", 0)).resolve_names(NAMES).force_in == ("a",)  # type: ignore[arg-type]
    assert Restrictions("c d, a").resolve_names(NAMES).force_in == ("a", "c d")  # type: ignore[arg-type]
    assert Restrictions("a,b").resolve_names(("a", "b", "a,b")).force_in == ("a,b",)  # type: ignore[arg-type]


def test_no_restriction_is_false_and_stays_as_it_is() -> None:
    assert not NONE and NONE.resolve_names(NAMES) is NONE and Restrictions(force_out=("a",))


def test_sizes_that_no_model_can_have() -> None:
    made = Restrictions(("a", "b"), ("7",))
    made.check_sizes([2, 3], 4)
    with pytest.raises(BadInput, match="^tau 1 is below the number of features that are forced in; use 2 to 3"):
        made.check_sizes([1, 2], 4)
    with pytest.raises(BadInput, match="^tau 4 is above the number of features that are not forced out; use at most 3"):
        made.check_sizes([4], 4)


def test_gamma_lists_are_sorted_and_free_of_repeats() -> None:
    assert model_space.gammas("1, 0.01,0.1,1") == (0.01, 0.1, 1.0)
    assert model_space.gammas("5") == (5.0,)


@pytest.mark.parametrize("text", ["1e-400", "1,5E-330", "-2e-400"])
def test_a_gamma_that_floats_round_to_0_is_out_of_range(text: str) -> None:
    assert model_space.gammas("0,0.0,0e5") == (0.0,)
    with pytest.raises(BadInput, match=f"'{text.split(',')[-1]}' is out of range; give a gamma from 1e-300"):
        model_space.gammas(text)


def test_gamma_grids_are_logarithmic_and_inclusive() -> None:
    assert model_space.gammas("0.001:10:5") == (0.001, 0.01, 0.1, 1.0, 10.0)
    assert model_space.gammas("0.3:7:9") == pytest.approx(np.geomspace(0.3, 7, 9), rel=1e-11)
    assert model_space.gammas("0.3:7:9")[0] == 0.3 and model_space.gammas("0.3:7:9")[-1] == 7.0
    assert model_space.gammas("2:2:1") == model_space.gammas("2:2:4") == (2.0,)


def test_the_default_gammas_are_15_log_points() -> None:
    grid = model_space.gammas(model_space.DEFAULT_GAMMAS)
    assert len(grid) == 15
    assert grid == pytest.approx(np.logspace(-3, 1, 15), rel=1e-11)
    assert model_space.default_gammas(89, 90) == grid and model_space.default_gammas(89, 90, 5) == model_space.gammas(
        "1e-3:10:5"
    )


@pytest.mark.parametrize(("loss", "ends", "count"), [("logistic", (0.3, 30.0), 5), ("poisson", (3.0, 3000.0), 7)])
def test_the_default_gammas_of_other_losses_are_over_the_rows(loss: str, ends: tuple[float, float], count: int) -> None:
    grid = model_space.default_gammas(9, 100, loss=Loss(loss))
    assert grid == pytest.approx(np.geomspace(*(end / 100 for end in ends), count), rel=1e-9)
    assert model_space.parse_gammas(None, 9, 100, loss=Loss(loss)) == grid
    assert len(model_space.default_gammas(9, 100, 3, Loss(loss))) == 3


def test_the_default_gammas_of_wide_data_begin_higher() -> None:
    assert model_space.default_gammas(90, 90) == model_space.gammas(model_space.WIDE_GAMMAS)
    assert model_space.default_gammas(90, 90) == pytest.approx(np.geomspace(0.05, 10, 9), rel=1e-11)
    assert model_space.parse_gammas(None, 90, 90) == model_space.default_gammas(90, 90)
    with pytest.raises(BadInput, match="^gammas: COUNT of '0.05:10:0'"):
        model_space.default_gammas(90, 90, 0)


@pytest.mark.parametrize(
    "text",
    ["", "-1", "nan", "inf", "a", "1,", "1,,2", "1:2", "1:2:3:4", "2:1:5", "0:1:5", "1:2:1", "1:2:0", "1:2:x", "1e400"],
)
def test_a_wrong_gamma_names_its_option(text: str) -> None:
    with pytest.raises(BadInput, match="^--gamma: "):
        model_space.gammas(text)


def test_tau_ranges_are_inclusive() -> None:
    assert model_space.taus("2:4", 9) == (2, 3, 4)
    assert model_space.taus("7", 9) == (7,)
    assert model_space.taus("5, 0, 2:3,3", 9) == (0, 2, 3, 5)
    assert model_space.taus("0:9", 9) == tuple(range(10))


@pytest.mark.parametrize(
    "text", ["", "10", "3:10", "-1", "-1:3", "4:2", "1:2:3", "a", "1.5", ":", "1:", "0:999999999999"]
)
def test_a_wrong_tau_names_its_option(text: str) -> None:
    with pytest.raises(BadInput, match="^--tau: "):
        model_space.taus(text, 9)


@pytest.mark.parametrize(
    ("p", "n_train", "last"),
    [(10, 441, 10), (100, 441, 50), (100, 240, 30), (100, 20, 10), (31, 31, 10), (30, 31, 30), (30, 9, 8), (5, 2, 1)],
)
def test_default_taus(p: int, n_train: int, last: int) -> None:
    assert model_space.default_taus(p, n_train, all_features=False) == tuple(range(1, last + 1))
    every = model_space.default_taus(p, n_train)
    assert every == (*range(1, last + 1), *([p] if last < p < n_train else []))


def test_all_features_are_tried_where_that_is_one_support_of_not_too_many() -> None:
    assert model_space.default_taus(300, 400)[-2:] == (50, 300) and model_space.default_taus(301, 400)[-1] == 50
    forced, one_of = Restrictions(force_in=("a", "b")), Restrictions(at_most="1:a,b")
    assert model_space.parse_taus(None, 40, 90) == tuple(range(1, 12)), "a list of best subsets has no need of it"
    assert model_space.parse_taus(None, 40, 90, restrictions=forced, all_features=True) == (*range(2, 12), 40)
    assert model_space.parse_taus(None, 40, 90, restrictions=one_of, all_features=True) == tuple(range(1, 12))


def test_python_takes_texts_numbers_and_lists() -> None:
    assert (
        model_space.parse_gammas("0.01:1:3", 9, 50)
        == model_space.parse_gammas(np.array([0.01, 0.1, 1.0]), 9, 50)
        == (0.01, 0.1, 1.0)
    )
    assert model_space.parse_gammas(np.float32(0.5), 9, 50) == (0.5,)
    assert model_space.parse_taus(np.int64(3), 9, 50) == model_space.parse_taus([3.0], 9, 50) == (3,)
    assert model_space.parse_taus("log", 10, 100) == model_space.log_taus(10, 100)
    assert model_space.parse_taus(None, 4, 3) == (1, 2)


@pytest.mark.parametrize("given", ["a", ["a"], [None], [float("nan")], object(), [[1.0]]])
def test_what_is_no_number_is_refused_in_one_line(given: object) -> None:
    with pytest.raises(BadInput, match=r"^gammas: .* (?:not|neither) a [^\n]*$"):
        model_space.parse_gammas(given, 9, 50)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"^taus: .* (?:not|neither) a [^\n]*$"):
        model_space.parse_taus(given, 9, 50)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"^taus: '1-3' is not a whole number; for a range write 1:3$"):
        model_space.parse_taus("1-3", 9, 50)
    with pytest.raises(BadInput, match=r"^taus: 2.5 is not a whole number; give whole numbers$"):
        model_space.parse_taus(2.5, 9, 50)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["10..1", "1..1", "0..1", "1..2..3", "a..b", "1..", "-1..2"])
def test_intervals_that_are_none_are_refused_by_the_option(text: str) -> None:
    with pytest.raises(BadInput, match="--gamma"):
        model_space.interval(text)


def test_an_interval_is_no_list() -> None:
    assert model_space.interval("0.01:1:3") is None
    with pytest.raises(BadInput, match="is an interval"):
        model_space.gammas("1e-3..10")
    with pytest.raises(BadInput, match="^gammas: 'a' and 2.0 are not two numbers; give the ends as numbers$"):
        model_space.GammaInterval("a", 2.0)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="positive numbers; give LO..HI with LO below HI"):
        model_space.GammaInterval(2.0, 1.0)


def test_limits_parents_and_forcing_name_factors() -> None:
    names = ["age", "city=B", "city=O", "city=T", "city:sex=B m", "city:sex=O m", "sex=f", "sex=m", "sex=x"]
    given = Restrictions(count="factors", hierarchy="strong", at_most="1:age,sex", force_in="city=O")  # type: ignore
    asked = given.resolve_names(names)
    assert asked.count == (tuple(names[1:4]), tuple(names[4:6]), tuple(names[6:]))
    assert asked.force_in == tuple(names[1:4]) and asked.at_most[0].features == ("age", "sex=f")
    assert asked.hierarchy == (Parents("city:sex=B m", ("city=B", "sex=f"), True),)
    assert (
        asked.resolve_names(names) == asked and asked.n_selectable_features(9) == 4 and asked.features(names[:3]) == 2
    )
    assert asked.words().endswith("(city, city:sex, sex); at most 1 of age, sex; city:sex only with city and sex")
    less = Restrictions(count="factors", adjust="sex", force_out="city=B").resolve_names(names)  # type: ignore
    assert less.count == (("city=O", "city=T"), ("city:sex=B m", "city:sex=O m")) and less.adjust == ("sex=m", "sex=x")
    with pytest.raises(BadInput, match="^count: the data have no factor with two or more columns.*; leave this option"):
        Restrictions(count="factors").resolve_names(["a", "b=c"])  # type: ignore[arg-type]
    for given in (True, [0.1, True]):
        with pytest.raises(BadInput, match="^gammas: True is not a finite number; give finite numbers$"):
            model_space.parse_gammas(given, 3, 9)
        with pytest.raises(BadInput, match="^taus: True is not a finite number; give finite numbers$"):
            model_space.parse_taus([2, True] if given is True else given[1:], 3, 9)  # type: ignore[index]
    with pytest.raises(BadInput, match=r'feature_name_combiner="\{\}=\{\}".format.*pandas.\)\)$'):
        Restrictions(count="factors").resolve_names(["x0", "x1"])  # type: ignore[arg-type]
    encoded = ["remainder__age", "onehot__city_A", "onehot__city_B"]
    with pytest.raises(BadInput, match=r"in Python, \[\['onehot__city_A', 'onehot__city_B'\], \.\.\.\]$"):
        Restrictions(count="factors").resolve_names(encoded)  # type: ignore[arg-type]


def test_terms_have_every_column_once_that_may_be_in_a_model() -> None:
    names = ["age", "city=B", "city=O", "dose", "sex", "s1", "s2", "s3"]
    asked = Restrictions(count="factors", adjust="age", force_in="s2", force_out="dose").resolve_names(names)  # type: ignore
    made = asked.terms(names, [["s1", "s2"], ["s2", "s3"]])
    together = Term(("s1", "s2", "s3"), 3, always=True)
    assert made == (Term(("age",), 0, 0.0, True), Term(("city=B", "city=O")), Term(("sex",)), together)
    assert asked.penalties(names[:2]) == [0.0, 1.0] and asked.forced_columns == ("s2", "age")
    with_one_out = [term.columns for term in asked.terms(names, [["s3", "dose"], ["s1", "absent"]])]
    assert with_one_out == [("age",), ("city=B", "city=O"), ("sex",), ("s2",)]
    assert together.convert_to_positions({"s1": 4, "s3": 9}) == Term((4, 9), 2, always=True)
    assert sorted(set(asked.named_columns())) == [
        ("adjust", "age"), ("count", "city=B"), ("count", "city=O"), ("force_in", "s2"), ("force_out", "dose"),
    ]  # fmt: skip
    with pytest.raises(BadInput, match="^adjust: column 'age' is constant"):
        asked.check_vary({"age", "s1"})
