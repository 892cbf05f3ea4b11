"""Proofs of models with covariates, whole factors, fold-specific preprocessing for every fold: against enumeration."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import second_checker
from forged_proofs import Lines, read_lines, write_lines
from true_claims import Truth

from sparsecv_mio.check.bounded_fits import AdjustedDesign
from sparsecv_mio.check.main import check, check_file
from sparsecv_mio.check.proof_file import Floats, Fractions, Refused
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.problem.problem import eliminate_forced_columns
from sparsecv_mio.problem.training_moments import full_problem
from sparsecv_mio.proofs.proof_writing import write_proof
from sparsecv_mio.proofs.threshold_trees import ChosenTerms, TooLarge, prove_terms
from sparsecv_mio.search.api import cross_validate

SCALES, INTERCEPTS, FOLDS = ("length", "variance", "none"), ("fold", "global", "none"), ("3", "loo", "blocks:4", "2x2")


def small(seed: int) -> tuple[Dataset, dict[str, Any]]:
    """A factor of three levels, a column that is adjusted for, and others; what is asked of them."""
    rng = np.random.default_rng([42, seed])
    level = np.arange(18) % 3
    X = np.column_stack([level == 0, level == 1, level == 2, rng.normal(size=(18, 4)) + 2.0]).astype(float)
    X[:, 5] += X[:, 3]
    names = ["g=0", "g=1", "g=2", "a", "b", "c", "d"]
    how: dict[str, Any] = {"scale": SCALES[seed % 3], "intercept": INTERCEPTS[seed // 3 % 3], "gammas": [0.03, 1.0]}
    how |= {
        "adjust": [["a"], ["a", "d"], []][seed % 3],
        "count": "factors",
        "force_out": ["b"] if seed % 4 == 1 else [],
    }
    y = X @ rng.normal(size=7) + rng.normal(size=18)
    return Dataset.from_arrays(X, y, names=names, target="y"), how


def proof_of(seed: int, place: Path) -> tuple[Dataset, Lines]:
    data, how = small(seed)
    if seed % 3 == 2:
        write_proof(best_subsets(data, taus=range(3), **how), data, place)
    else:
        plan = make_folds(FOLDS[seed % 4], data, seed)
        write_proof(cross_validate(data, plan, taus=range(3), threads=1, **how), data, place, plan)
    return data, read_lines(place)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_rows_and_moments_are_those_of_residuals(intercept: str) -> None:
    rng = np.random.default_rng(1)
    X, Z, y, left = rng.normal(size=(12, 3)), np.rint(8 * rng.normal(size=(12, 2))), rng.normal(size=12), [1, 7]
    exact = AdjustedDesign(X, y, "length", intercept, Fractions(), Z)
    floats = AdjustedDesign(X, y, "length", intercept, Floats(), Z)
    about = {"fold": np.delete(np.arange(12), left), "global": np.arange(12), "none": None}[intercept]
    both, train = np.column_stack([X, y]), np.delete(np.arange(12), left)
    beside, rest = (part - (0.0 if about is None else part[about].mean(axis=0)) for part in (Z, both))
    rest = rest - beside @ np.linalg.lstsq(beside[train], rest[train], rcond=None)[0]
    for design in (exact, floats):
        m, unit = design.exclude_rows(left), np.ldexp(1.0, -design.powers)
        own = rest * unit
        np.testing.assert_allclose(np.array(m.Q, dtype=float), own[train, :3].T @ own[train, :3], atol=1e-14)
        np.testing.assert_allclose(np.array(m.c, dtype=float), own[train, :3].T @ own[train, 3], atol=1e-14)
        np.testing.assert_allclose(np.array(design.centre_rows(m, left), dtype=float), own[left], atol=1e-14)
    assert isinstance(exact.exclude_rows(left).yy, Fraction)
    hat = np.column_stack([Z, np.ones(12)]) if intercept == "fold" else Z - (intercept == "global") * Z.mean(axis=0)
    leverages = np.diag(hat @ np.linalg.pinv(hat))
    np.testing.assert_allclose(floats.shares, leverages, atol=1e-14)
    with pytest.raises(Refused, match="dependent"):
        AdjustedDesign(X, y, "length", intercept, Floats(), np.column_stack([Z, Z[:, 0] - Z[:, 1]])).exclude_rows(left)


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_rows_that_training_rows_fill_and_measure(seed: int, tmp_path: Path) -> None:
    """Proved of the cells of the file: the enumeration fills and measures them by itself."""
    data, how = small(3 * seed + seed % 2)
    rng, na = np.random.default_rng(seed), ("mean", "median")[seed % 2]
    X = np.where(rng.random(data.X.shape) < 0.1 * (np.arange(7) > 2), np.nan, data.X)  # no level is empty
    frame = pd.DataFrame(X, columns=list(data.names)).assign(y=data.y)
    frame.to_csv(tmp_path / "d.csv", index=False)
    how |= {"scale": ("length", "variance")[seed % 2], "intercept": ("fold", "none")[seed // 2 % 2]}
    how |= {"na_within": "folds"} | ({"scale_within": "folds"} if seed % 3 else {})
    filled = Dataset.from_frame(frame, "y", na=na)
    plan = make_folds("3" if seed else "loo", filled, seed)
    record = cross_validate(filled, plan, taus=range(3), threads=1, **how)
    write_proof(record, filled, tmp_path / "p", plan)
    lines = read_lines(tmp_path / "p")
    assert lines[0]["within"] == {"na": na, "scale": bool(seed % 3)}
    assert Truth(X, data.y, lines[0]["data"]).false_statement(lines) is None
    ends = [check(str(tmp_path / "p"), X, data.y, mode).intervals for mode in ("fast", "exact")]
    assert all(ends[0][pair][0] <= low * (1.0 + 1e-12) for pair, (low, _) in ends[1].items())
    assert check_file(str(tmp_path / "p"), str(tmp_path / "d.csv")).intervals == ends[0]
    assert second_checker.check(tmp_path / "p", tmp_path / "d.csv").accepted
    lines[0]["within"]["na"] = {"mean": "median", "median": "mean"}[na]
    write_lines(tmp_path / "p", lines)
    with pytest.raises(Refused):
        check(str(tmp_path / "p"), X, data.y, "exact")
    del lines[0]["within"]
    write_lines(tmp_path / "p", lines)
    with pytest.raises(Refused, match="missing values"):
        check(str(tmp_path / "p"), X, data.y)


def test_no_tree_of_all_rows_speaks_of_such_folds(tmp_path: Path) -> None:
    data, lines = proof_of(0, tmp_path / "p")
    lines[0]["within"] = {"na": None, "scale": True}
    write_lines(tmp_path / "p", lines)
    with pytest.raises(Refused, match="fold-specific preprocessing"):
        check(str(tmp_path / "p"), data.X, data.y, "exact")


def test_a_tree_of_terms_lists_what_is_below_its_thresholds() -> None:
    data, _ = small(0)
    standard = standardize(data, "length", "fold", Restrictions(adjust="a", count="factors").resolve_names(data.names))
    chosen, problem = ChosenTerms.from_data(standard), eliminate_forced_columns(full_problem(standard, 0.3)).problem
    assert chosen.terms == ((0, 1, 2), (3,), (4,), (5,)) and not chosen.has_single_column_terms
    assert chosen.support_terms(np.array([0, 1, 2, 3, 5])) == (0, 2)  # the fourth is adjusted for
    values = {}
    for number in range(16):
        terms = tuple(t for t in range(4) if number >> t & 1)
        at = [j for t in terms for j in chosen.terms[t]]
        values[terms] = problem.yy - problem.c[at] @ np.linalg.solve(problem.M[np.ix_(at, at)], problem.c[at])
    bars = {size: float(np.median([v for s, v in values.items() if len(s) == size])) for size in (1, 2, 3)}
    tree = prove_terms(problem, chosen, bars, bars, (100, 100))
    assert {s for some in tree.listed.values() for s in some} == {
        s for s, v in values.items() if v < bars.get(len(s), 0)
    }
    with pytest.raises(TooLarge):
        prove_terms(problem, chosen, bars, bars, (100, 1))


def test_other_restrictions_have_no_proof(tmp_path: Path) -> None:
    data, _ = small(0)
    record = best_subsets(data, gammas=[1.0], taus=[2], force_in=["b"])
    with pytest.raises(BadInput, match="restrictions other than --adjust, --force-out and --count"):
        write_proof(record, data, tmp_path / "p")


def test_columns_far_from_zero_without_an_intercept_have_no_proof_at_gamma_0(tmp_path: Path) -> None:
    """They are dependent up to rounding: a pivot of the tree of proofs is 0."""
    steps = [[1, -1, 6], [1, -5, 4], [13, 9, -7], [-13, -6, 0], [-23, -2, -12], [-7, -5, -3], [4, 10, -1], [14, -7, 4]]
    y = [1.1, 0.7, -0.3, -1.6, -2.6, 0.0, -1.6, 1.9]
    data = Dataset.from_arrays(1e8 + np.array(steps) / 10.0, y)
    record = cross_validate(data, make_folds("2", data), gammas=[0.0], taus=[2], intercept="none", threads=1)
    with pytest.raises(BadInput, match="linearly dependent up to rounding at this gamma; give a larger gamma, or drop"):
        write_proof(record, data, tmp_path / "p", make_folds("2", data))
