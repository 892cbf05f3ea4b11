"""Beyond 15 features: what is caught is caught, what is not is said in the first line."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from altered_fields import set_fields

from sparsecv_mio.certificate import ridge_design
from sparsecv_mio.certificate.parts import ChosenFolds, relative_gap
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.cli import run
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.problem.objective import fit, held_out_error, r_squared, standard_error
from sparsecv_mio.search.api import cross_validate

CAVEAT = "optimality not verified (p > 15)"
R = dataclasses.replace


@cache
def data() -> Dataset:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 18)) + rng.normal(size=(40, 1))
    return Dataset.from_arrays(X, X[:, 0] + 0.5 * X[:, 3] + 2.0 * rng.normal(size=40))


@cache
def record(spec: str) -> Record:
    return cross_validate(data(), make_folds(spec, data(), 1), gammas=[0.05, 1.0], taus=[1, 2], gap=0.0, threads=1)


def with_supports(true: Record, supports: list[tuple[int, ...]]) -> Record:
    """The record as if these were the optimal supports: errors, means, bounds and R^2 agree with them."""
    plan = make_folds(true.folds.spec, data(), 1)
    models = [fit(data().X, data().y, s, true.gamma, rows=plan.train_rows(j)) for j, s in enumerate(supports)]
    errors = [held_out_error(m, data().X, data().y, plan.scored_rows(j)) for j, m in enumerate(models)]
    h = sum(errors) / plan.scored
    changes = {"cv_error": h, "lower": h, "upper": h, "standard_error": standard_error(np.array(errors), plan.sizes)}
    rows = [R(row, **changes) if (row.gamma, row.tau) == (true.gamma, true.tau) else row for row in true.table]
    lower = min(row.lower for row in rows)
    names = [[data().names[j] for j in s] for s in supports]
    return R(
        true, chosen_folds=ChosenFolds.of(names, errors), cv_error=h, lower=lower, upper=h, table=tuple(rows),
        gap=relative_gap(lower, h), r_squared=r_squared(data().y, plan.all_scored, h), tie_width=0.0, allowance=0.0,
        region=None,
    )  # fmt: skip


def supports_of(true: Record) -> list[tuple[int, ...]]:
    index = {name: j for j, name in enumerate(data().names)}
    return [tuple(index[name] for name in chosen.support) for chosen in true.chosen_folds]


def best_held_out(true: Record, fold: int) -> tuple[int, ...]:
    """The support that looks best on the rows it is scored on."""
    plan = make_folds(true.folds.spec, data(), 1)
    train, test = plan.train_rows(fold), plan.scored_rows(fold)
    return min(
        combinations(range(18), true.tau),
        key=lambda s: held_out_error(fit(data().X, data().y, s, true.gamma, rows=train), data().X, data().y, test),
    )


@pytest.mark.parametrize("spec", ["4", "loo"])
def test_a_true_record_passes_with_the_caveat(spec: str) -> None:
    report = verify(record(spec), data())
    assert report.failures == () and report.caveat == CAVEAT
    rebuilt = with_supports(record(spec), supports_of(record(spec)))
    assert verify(rebuilt, data()).failures == ()


def test_supports_of_open_folds_are_only_read() -> None:
    cut = cross_validate(
        data(), make_folds("4", data(), 1), gammas=[0.05], taus=[2], method="grid", mio_budget=0, threads=1
    )
    assert not cut.chosen_folds.decided.any()
    report = verify(cut, data())
    assert report.failures == () and not any(
        "no exchange of one column and no other" in part for part in report.verified
    )
    assert "supports of the reported pair (not checked, because no fold of this pair is solved)" in report.reread


@pytest.mark.parametrize("spec", ["4", "loo"])
def test_supports_that_are_best_on_the_held_out_rows_are_caught(spec: str) -> None:
    true = record(spec)
    k = true.folds.k if spec == "4" else 3
    flattering = [best_held_out(true, j) for j in range(k)] + supports_of(true)[k:]
    altered = with_supports(true, flattering)
    assert altered.cv_error < true.cv_error
    report = verify(R(altered, stability=None), data())
    assert {failure.field.split("[")[0] for failure in report.failures} - {"mae"} == {"chosen_folds"}


def test_one_support_for_every_fold_is_caught_where_another_of_the_record_is_better() -> None:
    """That of all rows, or of another fold."""
    true = record("4")
    supports = supports_of(true)
    frequent = max(set(supports), key=supports.count)
    odd = [j for j, support in enumerate(supports) if support != frequent]
    assert odd, "the folds must differ for this test to say something"
    report = verify(with_supports(true, [frequent] * len(supports)), data())
    assert f"chosen_folds[{odd[0]}].support" in [failure.field for failure in report.failures]


def test_bounds_of_the_fit_on_all_rows_are_held_against_its_neighbours() -> None:
    true = record("4")
    wrong = sorted(set(range(18)) - {data().names.index(name) for name in true.support})[: len(true.support)]
    model = fit(data().X, data().y, wrong, true.gamma)
    names = tuple(data().names[j] for j in wrong)
    f = model.objective
    altered = R(
        true, stability=None, support=names, coefficients=dict(zip(names, model.beta.tolist(), strict=True)),
        intercept=model.intercept, refit=R(true.refit, objective=f, lower=f, upper=f),
    )  # fmt: skip
    assert [failure.field for failure in verify(altered, data()).failures] == ["refit.lower"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("tie_width", lambda _: 1.0),
        ("allowance", lambda _: 3e-7 * record("4").upper),
        ("table.0.standard_error", lambda error: error * 1.01),
        ("table.1.upper", lambda _: np.inf),
    ],
)
def test_one_check_refuses(field: str, change: Callable[[float], float]) -> None:
    """The first row is that of the answer."""
    true = record("4")
    rows = sorted(true.table, key=lambda one: (one.gamma, one.tau) != (true.gamma, true.tau))
    sorted_record = R(true, table=tuple(rows), loosest=None)
    assert verify(sorted_record, data()).ok
    failures = verify(set_fields(sorted_record, {field: change}), data()).failures
    assert [failure.field for failure in failures] == [re.sub(r"\.(\d)", r"[\1]", field)]


def test_a_mean_absolute_error_that_is_not_recomputed_is_that_of_the_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge_design, "DIRECT_WORK", 0)
    true = record("loo")
    assert verify(true, data()).ok and true.mae is not None
    assert [failure.field for failure in verify(R(true, mae=true.mae * 1.001), data()).failures] == ["mae"]


def test_the_lower_bound_of_a_fit_is_at_most_its_objective() -> None:
    true = fit_one(data(), tau=3, gamma=0.3)
    altered = R(true, lower=1.01 * true.objective, gap=relative_gap(1.01 * true.objective, true.upper))
    assert verify(true, data()).ok and [failure.field for failure in verify(altered, data()).failures] == ["lower"]


def test_paths_come_with_the_caveat_and_their_neighbours_are_tried() -> None:
    path = best_subsets(data(), gammas=[0.05], taus=[1, 3], threads=1)
    assert verify(path, data()).failures == () and verify(path, data()).caveat == CAVEAT
    worse = fit(data().X, data().y, [7], 0.05)
    f = worse.objective
    row = R(path.path[0], support=("x7",), coefficients={"x7": float(worse.beta[0])}, intercept=worse.intercept)
    row = R(row, objective=f, lower=f, upper=f)
    report = verify(R(path, path=(row, path.path[1])), data())
    assert [failure.field for failure in report.failures] == ["path[0].lower"]


def test_the_screen_says_it_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wide.csv"
    rows = np.column_stack([data().X, data().y]).tolist()
    file.write_text("\n".join([",".join([*data().names, "y"]), *(",".join(map(repr, row)) for row in rows)]) + "\n")
    record("4").write_record(tmp_path / "wide.json")
    for options in ([], ["--quiet"]):
        assert run(["verify", str(tmp_path / "wide.json"), str(file), *options]) == 0
        assert capsys.readouterr().out.splitlines()[0] == f"the record agrees with the data; {CAVEAT}"
