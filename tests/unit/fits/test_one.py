"""One best subset on all rows, from Python."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import problems
import pytest
from logistic_truth import fitted

from sparsecv_mio.certificate.fit_records import FitRecord
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits import one
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import export_one, fit_one
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.problem.objective import fit


def made(seed: int) -> Dataset:
    return problems.linear(seed, 20, 5, {0: 1.0, 4: -1.0})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", ["length", "variance", "none"])
def test_the_answer_is_the_least_of_all_subsets(seed: int, scale: str) -> None:
    data, intercept = made(seed), ("fold", "global", "none")[seed % 3]
    found = fit_one(data, tau=2, gamma=0.3, scale=scale, intercept=intercept)
    supports = [S for size in range(3) for S in combinations(range(5), size)]
    values = {S: fit(data.X, data.y, list(S), 0.3, scale=scale, intercept=intercept).objective for S in supports}
    best = min(values, key=lambda S: values[S])
    assert found.support == tuple(data.names[j] for j in best) and found.status == "proved"
    assert found.objective == pytest.approx(values[best], rel=1e-9)
    assert found.lower <= values[best] * (1 + 1e-12) and found.upper >= values[best] * (1 - 1e-12)


@pytest.mark.parametrize("p", [6, 49])
def test_rounding_that_hides_every_bound_is_no_allowance(p: int) -> None:
    """Columns that are collinear to rounding: what the record allows for is bounded, and `verify` accepts it."""
    rng = np.random.default_rng(3)
    X = 1e9 + rng.normal(size=(60, p))
    data = Dataset.from_arrays(X, rng.normal(size=60))
    found = fit_one(data, tau=3, gamma=1e-6, intercept="none")
    assert 0.0 <= found.allowance <= 1e-3 * found.upper
    assert FitRecord.from_json(found.to_json()) == found and verify(found, data).ok


def test_a_start_and_limits_are_taken() -> None:
    found = fit_one(made(1), tau=2, gamma=0.3, start=["x0", "x4"], limits=Limits(gap=0.5, threads=2))
    assert found.requested_gap == 0.5 and found.warnings == ("backend native uses one thread, not 2",)
    with pytest.raises(BadInput, match="start: 'nose' is not a feature"):
        fit_one(made(1), tau=2, gamma=0.3, start=["nose"])


@pytest.mark.parametrize("pair", [(-1, 0.3), (6, 0.3), (2, -0.1), (2, float("nan")), (2, float("inf"))])
def test_a_pair_out_of_range(pair: tuple[int, float], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is out of range"):
        fit_one(made(0), tau=pair[0], gamma=pair[1])
    with pytest.raises(BadInput, match="is out of range"):
        export_one(made(0), str(tmp_path / "model.lp"), tau=pair[0], gamma=pair[1])


def test_side_constraints_that_exclude_every_support() -> None:
    with pytest.raises(BadInput, match="no support of at most 1 features"):
        fit_one(made(0), tau=1, gamma=0.3, backend="highs", side=SideOptions(force_in=("x0", "x1")))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"assume_box": 0.0}, "assume_box 0 is out of range"),
        ({"assume_box": float("nan")}, "assume_box nan is out of range"),
        ({"assume_box": 1.0, "backend": "highs"}, "assume_box: requires backend native, not highs"),
        ({"assume_box": 1.0, "side": SideOptions(force_in=("x0",))}, "not supported with side constraints"),
    ],
)
def test_an_assumed_box_that_means_nothing_is_refused(keywords: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        fit_one(made(0), tau=2, gamma=0.3, **keywords)  # type: ignore[arg-type]


def test_an_assumed_box_is_said_or_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = fit_one(made(0), tau=2, gamma=0.3)
    largest = max(map(abs, plain.coefficients.values()))
    found = fit_one(made(0), tau=2, gamma=0.3, assume_box=2.0 * largest)
    assert found.assumed_box == 2.0 * largest and found.status == "proved"
    assert "if coefficients are within" in repr(found)
    assert verify(found, made(0)).ok
    failures = verify(replace(found, assumed_box=0.9 * largest), made(0)).failures
    assert [failure.field for failure in failures] == ["assumed_box"]
    aside = fit_one(made(0), tau=2, gamma=0.3, assume_box=0.5 * largest)
    assert aside.assumed_box is None and "was ignored" in aside.warnings[0] and aside.objective == plain.objective
    monkeypatch.setattr(one, "has_large_matrices", lambda data, folds: True)
    with pytest.raises(
        BadInput, match="assume_box: not supported with 5 columns, because their Gram matrix does not fit in memory"
    ):
        fit_one(made(0), tau=2, gamma=0.3, assume_box=1.0)


@pytest.mark.parametrize("wide", [False, True])
def test_forced_features_by_our_own_engine(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        monkeypatch.setattr(one, "has_large_matrices", lambda data, folds: True)
    for seed in range(6):
        data = made(seed)
        names = np.random.default_rng(seed).permutation(data.names).tolist()
        side, tau = SideOptions(force_in=tuple(names[:1]), force_out=tuple(names[1:2])), min(3, data.p - 1)
        record = fit_one(data, tau=tau, gamma=0.3, side=side)
        assert record.status == "proved" and names[0] in record.support and names[1] not in record.support
        others = [j for j, name in enumerate(data.names) if name not in names[:2]]
        first = data.names.index(names[0])
        values = [fit(data.X, data.y, sorted((first, *some)), 0.3).objective for some in combinations(others, tau - 1)]
        assert record.objective == pytest.approx(min(values), rel=1e-9)


def of_classes(seed: int) -> Dataset:
    rng = np.random.default_rng(seed)
    X = 10.0 + rng.normal(size=(40, 4)) * [1.0, 10.0, 0.1, 1.0]
    y = np.where(X[:, 0] - 10.0 - (X[:, 2] - 10.0) * 5.0 + rng.logistic(size=40) > 0.0, "yes", "no")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(ill=y)
    return Dataset.from_frame(frame, "ill", two_words=True)


@pytest.mark.parametrize(("backend", "scale", "intercept"), [
    ("native", "length", "fold"), ("highs", "variance", "fold"), ("scip", "none", "none"), ("gurobi", "length", "none"),
])  # fmt: skip
def test_two_classes_by_every_solver(backend: str, scale: str, intercept: str) -> None:
    """The least of all subsets by the definition, with words of the target, and probabilities of the positive one."""
    data = of_classes(3)
    record = fit_one(data, tau=2, gamma=0.3, loss="logistic", backend=backend, scale=scale, intercept=intercept)
    y = as_two_classes(data).y
    supports = [S for size in range(3) for S in combinations(range(4), size)]
    how = {"scale": scale, "intercept": intercept}
    values = {S: fitted(data.X, y, S, 0.3, **how).objective for S in supports}  # type: ignore[arg-type]
    best = min(values, key=lambda S: values[S])
    assert record.support == tuple(data.names[j] for j in best) and record.status == "proved"
    assert record.objective == pytest.approx(values[best], rel=1e-9)
    assert record.lower <= values[best] * (1 + 1e-12) and record.upper >= values[best] * (1 - 1e-12)
    assert record.classes is not None and (record.classes.negative, record.classes.positive) == ("no", "yes")
    model = fitted(data.X, y, best, 0.3, **how)  # type: ignore[arg-type]
    assert record.predict(data) == pytest.approx(1.0 / (1.0 + np.exp(-model.predictors(data.X))), rel=1e-6)
    assert FitRecord.from_json(record.to_json()) == record and verify(record, data).ok


def test_two_classes_and_what_does_not_go_with_them() -> None:
    data = of_classes(3)
    other = fit_one(data, tau=1, gamma=0.3, loss="logistic", positive="no")
    same = fit_one(data, tau=1, gamma=0.3, loss="logistic")
    assert other.objective == pytest.approx(same.objective, rel=1e-12) and other.support == same.support
    assert other.predict(data) == pytest.approx(1.0 - same.predict(data), rel=1e-6)
    balanced = fit_one(data, tau=1, gamma=0.3, loss="logistic", class_weight="balanced")
    assert balanced.data.class_weight == "balanced" and verify(balanced, data).ok
    for words, message in (
        ({"positive": "maybe"}, "'maybe' is not a class of 'ill', whose classes are no and yes"),
        ({"intercept": "global"}, "intercept global is not supported, because it centres the target"),
        ({"assume_box": 3.0}, "loss logistic: not supported with assume-box"),
        (
            {"side": SideOptions(at_most="1:a")},
            "backend native, formulation tree, with loss logistic, does not support: at_most",
        ),
        ({"backend": "highs", "formulation": "benders"}, "formulation"),
        ({"backend": "highs", "side": SideOptions(nonnegative="a")}, "with loss logistic, does not support: sign"),
    ):
        with pytest.raises(BadInput, match=message):
            fit_one(data, tau=1, gamma=0.3, loss="logistic", **words)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="requires loss logistic"):
        fit_one(made(0), tau=1, gamma=0.3, positive="yes")


def test_two_classes_written_to_files(tmp_path: Path) -> None:
    """SCIP reads what Pyomo writes, and HiGHS the linear model: least objectives are those of the fit."""
    import highspy
    import pyscipopt

    data = of_classes(3)
    best = fit_one(data, tau=2, gamma=0.3, loss="logistic").objective
    place = str(tmp_path / "m.nl")
    offset, factor, missed = export_one(data, place, tau=2, gamma=0.3, loss="logistic")
    solver = pyscipopt.Model()
    solver.hideOutput()
    solver.readProblem(place)
    solver.optimize()
    assert missed == 0.0 and offset + factor * solver.getObjVal() == pytest.approx(best, rel=1e-5)
    place = str(tmp_path / "m.mps")
    offset, factor, missed = export_one(data, place, tau=2, gamma=0.3, loss="logistic", piecewise=40)
    linear = highspy.Highs()
    linear.setOptionValue("output_flag", False)
    linear.readModel(place)
    linear.run()
    found = offset + factor * linear.getInfo().objective_function_value
    assert found - 1e-6 * best <= best <= found + missed + 1e-6 * best and missed < 0.1 * best
    with pytest.raises(
        BadInput, match="--to: .mps files cannot represent the log loss; write .nl, .cbf or .ptf, or a linear model"
    ):
        export_one(data, place, tau=2, gamma=0.3, loss="logistic")
    pytest.importorskip("mosek")
    for end in ("cbf", "ptf"):
        export_one(data, str(tmp_path / f"m.{end}"), tau=2, gamma=0.3, loss="logistic")
        assert "EXP" in (tmp_path / f"m.{end}").read_text()


def test_side_constraints_are_read_as_restrictions_are() -> None:
    rng = np.random.default_rng(5)
    city = rng.integers(0, 3, 40)
    X = np.column_stack([*(np.equal.outer(range(3), city) * 1.0), rng.normal(size=(40, 3))])
    data = Dataset.from_arrays(X, X[:, 3] + rng.normal(size=40), ["city=a", "city=b", "city=c", "u", "v", "w"])
    record = fit_one(data, tau=2, gamma=0.1, side=SideOptions(adjust=("city",), force_in=("5",)), intercept="none")
    assert set(record.coefficients) == {"city=a", "city=b", "city=c", *record.support} and "w" in record.support
    assert verify(record, data).ok
    for given, message in (
        ({"force_in": ("city",)}, "adjust, force_in: column 'city=a' is in both"),
        ({"together": (("u", "city=b"),)}, "adjust, together: column 'city=b' is in both"),
        ({"force_in": ("x",)}, "force_in: 'x' is not a feature"),
    ):
        with pytest.raises(BadInput, match=message):
            fit_one(data, tau=3, gamma=0.1, side=SideOptions(adjust=("city",), **given))  # type: ignore[arg-type]


def test_cells_are_filled_by_all_rows_and_none_is_held_out() -> None:
    frame = pd.DataFrame({"a": [1.0, None, 3.0, 5.0, 2.0], "b": [2.0, 1.0, 0.0, 2.0, 5.0], "y": [1, 2, 4, 4, 1]})
    data = Dataset.from_frame(frame, "y", na="mean")
    for record in (fit_one(data, tau=1, gamma=0.1), best_subsets(data, gammas=0.1)):
        assert record.warnings == ("1 missing value imputed by the mean of its column over all rows, in 'a'",)


def test_a_level_forced_out_of_a_factor_leaves_a_regular_problem_at_gamma_0() -> None:
    """With all levels the moments are singular; the level that no model may use is not one of them."""
    rng = np.random.default_rng(0)
    level, x = rng.integers(0, 3, 36), rng.normal(size=36)
    X = np.column_stack([level == 0, level == 1, level == 2, x]).astype(float)
    data = Dataset.from_arrays(X, X @ [-1.0, 0.5, 0.0, 1.0] + 0.3 * rng.normal(size=36), ["f=a", "f=b", "f=c", "x"])
    side = SideOptions(count=[("f=a", "f=b", "f=c")], force_out=("f=c",))
    for tau, supports in ((1, ((), (3,), (0, 1))), (2, ((), (3,), (0, 1), (0, 1, 3)))):
        record = fit_one(data, tau=tau, gamma=0.0, side=side)
        values = {support: fit(X, data.y, support, 0.0).objective for support in supports}
        best = min(supports, key=values.__getitem__)
        assert record.status == "proved" and record.objective == pytest.approx(values[best], rel=1e-9)
        assert record.support == tuple(data.names[j] for j in best)


@pytest.mark.parametrize("gamma", [0.0, 1e-12, 1e-9])
@pytest.mark.parametrize(
    "side",
    [
        {},
        {"nonpositive": ("a",)},
        {"nonnegative": ("a", "copy"), "coef_bounds": "b=-1..0.5"},
        {"adjust": ("c",), "force_in": ("b",), "nonnegative": ("copy",)},
    ],
)
def test_duplicate_columns_are_told_apart_by_their_rows(gamma: float, side: dict[str, Any]) -> None:
    """Bounds by moments differ by their rounding errors, which are large without a ridge."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(24, 3)) + 1.0
    y, names = X @ [2.0, -1.0, 0.5] + rng.normal(size=24), ["a", "b", "c", "copy"]
    data = Dataset.from_arrays(np.column_stack([X, X[:, 0]]), y, names=names)
    tau = 1 if gamma == 0.0 else 2
    record = fit_one(data, tau=tau, gamma=gamma, side=SideOptions(**side))
    found = verify(FitRecord.from_json(record.to_json()), data)
    assert record.status == "proved" and found.ok and not found.caveat
    path = best_subsets(data, gammas=[gamma], taus=[tau], **side).path[0]
    assert record.objective == pytest.approx(path.objective, rel=1e-9)
    assert record.lower == pytest.approx(path.lower, rel=1e-6)
