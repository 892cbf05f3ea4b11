"""Intervals of two classes without branching, on the command line too; the truth is in tests/brute_force."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import problems
import pytest

from sparsecv_mio.bounds.more_weight import HeldOutWeightedBounds
from sparsecv_mio.bounds.smooth_cv_error import bound_smooth_cv_errors, bound_weighted_by_all_columns
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.targets import Loss
from sparsecv_mio.trees.smooth_rows import make_subsets, rows_in_units


def two_classes() -> Dataset:
    return problems.classes(3, 80, 5, {0: 1.0})


def test_intervals_hold_what_a_search_decides() -> None:
    data = two_classes()
    plan = make_folds("stratified:4", data)
    table = bound_smooth_cv_errors(standardize(data, loss=Loss.LOGISTIC), plan, [0.1, 1.0], [1, 3])
    record = cross_validate(data, plan, gammas=[0.1, 1.0], taus=[1, 3], loss="logistic", gap=0.0)
    for row in record.table:
        ends = table.cv_interval([0.1, 1.0].index(row.gamma), [1, 3].index(row.tau))
        assert 0.0 < ends.lower <= row.cv_error <= ends.upper < np.inf
        assert ends.lower > 0.5 * row.cv_error


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.POISSON])
def test_held_out_rows_with_more_weight(loss: Loss) -> None:
    data = two_classes()
    if loss == Loss.POISSON:
        data = Dataset.from_arrays(data.X, np.random.default_rng(4).poisson(np.exp(data.X[:, 0])).astype(float))
    plan, gammas, taus = make_folds("4", data), np.array([0.1, 1.0, 9.0]), np.arange(1, 6)
    standard = standardize(data, loss=loss)
    for fold in range(4):
        bounds = HeldOutWeightedBounds(gammas, taus)
        bound_weighted_by_all_columns(standard, plan, fold, bounds)
        rows, training = rows_in_units(standard, plan.scored_rows(fold)), make_subsets(standard, plan.train_rows(fold))
        for g, gamma in enumerate(gammas.tolist()):
            at, every = training.with_gamma(gamma), [np.array(s) for s in combinations(range(5), 2)]
            fits, low, high = at.score_supports(every, *rows)
            best = int(np.argmin(fits.upper))
            values = np.full((3, 5), np.inf)
            values[g, 1] = fits.upper[best]
            said = bounds.held_out_errors(values)
            assert np.count_nonzero(said) == 1 and 0.3 * low[best] < said[g, 1] <= high[best]
        assert np.all(np.diff(bounds.lower, axis=1) > 0.0) and np.all(bounds.lower[:, :, 0] == bounds.lower[:, :, 4])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, table, out = two_classes(), tmp_path / "t.csv", tmp_path / "b.json"
    rows = [",".join(map(str, [*row, "yes" if y else "no"])) for row, y in zip(data.X, data.y, strict=True)]
    table.write_text("\n".join(["a,b,c,d,e,y", *rows]))
    asked = ["bounds", str(table), "--target", "y", "--loss", "logistic", "--gamma", "0.1", "--tau", "1:2"]
    assert run([*asked, "--json", str(out)]) == 0
    assert "supports of a local search" in capsys.readouterr().out
    record = json.loads(out.read_text())
    assert record["options"]["loss"] == "logistic" and len(record["table"]) == 2
    assert run([*asked, "--bounds", "as-printed"]) == 2
    assert "--bounds as-printed" in capsys.readouterr().err
