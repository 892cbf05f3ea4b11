"""Records of logistic loss: those of a search hold, altered ones are refused or say that the field is only read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import problems
import pytest
from altered_numbers import altered, multiplied, numbers
from slow import slow

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.certificate.checked_fields import MOST_FITS, Checks
from sparsecv_mio.certificate.claims import check_quality
from sparsecv_mio.certificate.fit_records import FitRecord, PathRecord
from sparsecv_mio.certificate.glm_design import GlmDesign
from sparsecv_mio.certificate.records import Classes, Record
from sparsecv_mio.certificate.refits import has_proof, make_design
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.loss_targets import as_two_classes
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput, OutOfTime, SparseCVError
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.proofs.proof_writing import refuse_unsupported_record
from sparsecv_mio.search.api import cross_validate, solve
from sparsecv_mio.units import NEWTON_RTOL


def drawn() -> Dataset:
    return as_two_classes(problems.classes(5, 60, 4, {0: 1.0, 2: -1.0}))


DATA = drawn()
SMALL = as_two_classes(Dataset.from_arrays(DATA.X[:, :3], DATA.y))  # its record is verified some hundred times
FACTORS = (1.001, 0.5, -1.0)
MAKERS: dict[str, Callable[[], Record | PathRecord | FitRecord]] = {
    "search": lambda: cross_validate(DATA, "4", gammas=[0.1, 1.0], taus=[1, 2, 3], loss="logistic", one_se=True),
    "small search": lambda: cross_validate(SMALL, "3", gammas=[0.1, 1.0], taus=[1, 2], loss="logistic", one_se=True),
    "path": lambda: best_subsets(DATA, gammas=[0.1, 1.0], taus=[1, 2], loss="logistic"),
    "fit": lambda: fit_one(DATA, tau=2, gamma=0.1, loss="logistic"),
}
# what no verification can know, and what moves nothing that is claimed
READ = ("work.", "versions", "request.threads", "request.time_limit", "request.one_se", "training_gap")


@cache
def solved(kind: str = "search") -> Any:
    """Return a record of logistic loss."""
    return MAKERS[kind]()


@pytest.mark.parametrize("kind", ["search", "path", "fit"])
def test_what_a_search_says_holds(kind: str) -> None:
    record = solved(kind)
    found = verify(record, DATA)
    assert found.ok and not found.caveat
    assert type(record).from_json(record.to_json()) == record


@pytest.mark.parametrize(
    ("weighted", "how"),
    [
        (False, {}),
        (True, {}),
        (False, {"class_weight": "balanced"}),
        (False, {"force_in": ("x1",)}),
        (False, {"force_out": ("x1",)}),
        (False, {"scale_within": "folds"}),
        (False, {"gap": 0.0, "time_limit": 1e-9}),
    ],
    ids=lambda value: "" if isinstance(value, bool) else ",".join(value),
)
def test_a_proof_is_named_where_one_can_be_written(weighted: bool, how: dict[str, Any]) -> None:
    """As what is not verified is said with it: `sparsecv solve --proof` then takes the same options."""
    data = weighted_rows(DATA, np.linspace(0.5, 2.0, DATA.n), "w") if weighted else DATA
    record = cross_validate(data, "4", gammas=[0.1], taus=[1, 2], loss="logistic", **how)
    try:
        refuse_unsupported_record(record, data)
    except (BadInput, OutOfTime):
        assert not has_proof(record) and "--proof" not in make_design(record, data).limit_words
    else:
        assert not weighted and not how and "--proof" in make_design(record, data).limit_words


@pytest.mark.parametrize("gamma", [1e-60, 1e-100, 1e-290, 1e42, 1e100])
def test_records_of_the_least_and_the_largest_gammas_hold(gamma: float) -> None:
    """Margins of separated rows are hundreds, and each step of Newton's method moves them by 1; or no step is worth a
    digit of the objective, and coefficients are 1e-42."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(24, 2))
    data = as_two_classes(Dataset.from_arrays(X, (X[:, 0] + 0.1 * rng.logistic(size=24) > 0.0).astype(float)))
    record = cross_validate(data, "4", gammas=[gamma], taus=[1, 2], loss="logistic", gap=0.0)
    found = verify(record, data)
    assert record.status == "proved" and found.ok, found.failures[:2]
    assert len(record.coefficients) == record.tau and all(record.coefficients.values())


def test_rows_near_even_chances_count_for_either_class_and_rows_at_them_for_the_first() -> None:
    y = np.arange(12) % 2 * 1.0
    weights = np.repeat(np.random.default_rng(1).choice([0.3, 1.1, 3.7], size=6), 2)  # each class weighs the same

    def fields(chances: FloatArray, accuracy: float, auc: float) -> list[str]:
        checks, brier = Checks(), float(np.average((chances - y) ** 2, weights=weights))
        check_quality(checks, Classes("0", "1", 0.7, accuracy, auc, brier), y, chances, weights, "")
        return [failure.field for failure in checks.failures]

    even = np.full(12, 0.5)
    assert fields(even + 1e-8 * (1.0 - 2.0 * y), 0.9, 0.2) == []
    assert fields(even + 1e-15 * y, 0.5, 0.5) == []
    assert fields(even + 1e-15 * y, 0.9, 0.2) == ["accuracy", "auc"]
    assert fields(np.where(y > 0, 0.9, 0.1), 0.9, 0.9) == ["accuracy", "auc"]


@pytest.mark.parametrize("seed", range(20))
def test_the_supports_that_branching_leaves_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(15, 50)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-3, 3, size=p) + rng.choice([0.0, 1e3, 1e6])
    X[:, 1] = X[:, 0] * (1.0 + rng.choice([0.0, 1e-7, 1.0]) * rng.normal(size=n))
    y = (rng.normal(size=n) + rng.choice([0.0, 3.0, 50.0]) * (X[:, 0] - X[:, 0].mean()) / X[:, 0].std() > 0.0).astype(
        float
    )
    y[:4] = 0.0, 1.0, 0.0, 1.0
    data, gamma, tau = (
        as_two_classes(Dataset.from_arrays(X, y)),
        10.0 ** rng.uniform(-8, 2),
        int(rng.integers(1, p + 1)),
    )
    design, other, rows = make_design(solved(), data), make_design(solved(), data), np.arange(n - 3)
    assert isinstance(other, GlmDesign)
    values = {S: design.refit(S, gamma, rows).objective for S in combinations(range(p), tau)}
    least = min(values.values()) * (1.0 + NEWTON_RTOL)
    best = other.best(gamma, tau, rows, tuple(range(tau)), MOST_FITS)
    assert best is not None and set(best) >= {S for S, value in values.items() if value <= least}
    assert all(values[S] <= least * (1.0 + NEWTON_RTOL) for S in best)


@pytest.mark.parametrize("kind", ["search", "path", "fit"])
@pytest.mark.parametrize("by_turns", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["one", "all"])
def test_every_altered_number_is_refused_or_read(kind: str, by_turns: bool) -> None:
    is_small = by_turns and kind == "search"
    record, data = solved("small search" if is_small else kind), SMALL if is_small else DATA
    whole, kept = json.loads(record.to_json()), []
    for i, (path, value) in enumerate(numbers(whole)):
        name = ".".join(map(str, path))
        if name.startswith(READ):
            continue
        for factor in (FACTORS[i % len(FACTORS)],) if by_turns else FACTORS:
            other = multiplied(value, factor)
            if other == value:
                continue
            try:
                found = verify(type(record).from_json(altered(whole, path, other)), data)
            except SparseCVError:
                continue
            if found.ok and not any(name.split(".")[-1] in words for words in found.reread):
                kept.append((name, factor))
    # bounds that were loosened still hold, and rounding is not claimed to be exact; of pairs that are not decided the
    # errors are estimates within their intervals, and a smaller part of what is proved is proved too
    loosened = (
        "lower",
        "upper",
        "instability_lower",
        "instability_upper",
        "gap",
        "requested_gap",
        "tie_width",
        "allowance",
        "standard_error",
        "up_to_tau",
    )
    rows = enumerate(record.table) if isinstance(record, Record) else ()
    undecided = {f"table.{i}.{name}" for i, row in rows if row.estimate for name in ("cv_error", "folds_decided")}
    assert [name for name, _ in kept if name.split(".")[-1] not in loosened and name not in undecided] == []


def test_a_standard_error_is_told_as_closely_as_the_losses_of_its_folds_are() -> None:
    """Tolerances relative to the CV error alone let small ones be anything."""
    record = cross_validate(DATA, "4", gammas=[0.1, 1.0], taus=[1, 2], loss="logistic", gap=0.0, force_in="x3")
    assert verify(record, DATA).ok
    rows = [row for row in record.table if row.folds_decided == row.folds]
    assert min(row.standard_error / row.cv_error for row in rows) < 0.02 and len(rows) == 4
    for row in rows:
        wrong = replace(row, standard_error=row.standard_error * (1.0 + 1e-4))
        found = verify(replace(record, table=tuple(wrong if other is row else other for other in record.table)), DATA)
        assert {failure.field.split(".")[-1] for failure in found.failures} == {"standard_error"}


def test_other_words_are_refused() -> None:
    altered = solved().to_json().replace('"positive": "1"', '"positive": "0"')
    altered = altered.replace('"negative": "0"', '"negative": "1"')
    assert not verify(Record.from_json(altered), DATA).ok


def test_a_class_may_be_asked_for_in_any_letters_that_name_it_alone() -> None:
    """Of classes `b` and `B` a word in capital letters is the second one."""
    X, y = np.arange(12.0)[:, None], np.tile([0.0, 1.0, 1.0, 0.0], 3)
    for classes, word, right in ((("false", "true"), "True", True), (("false", "true"), "FALSE", False),
                                 (("b", "B"), "B", True), (("B", "b"), "B", False)):  # fmt: skip
        data = replace(as_two_classes(Dataset.from_arrays(X, y)), classes=classes)
        record = cross_validate(data, "3", gammas=[1.0], taus=[1], loss="logistic")
        assert verify(replace(record, request=replace(record.request, positive=word)), data).ok == right


def test_a_class_that_a_search_takes_by_its_digits_is_verified() -> None:
    """Classes are named by twelve digits: a word with more of them names the same one to both."""
    X, y = np.arange(12.0)[:, None], np.tile([7.0, 1234567890123.0, 1234567890123.0, 7.0], 3)
    data = Dataset.from_arrays(X, y)
    record = solve(data, folds="3", gammas=[1.0], taus=[1], loss="logistic", positive="1234567890123")
    assert verify(record, data).ok


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_words_that_nobody_can_ask_with_are_refused(loss: str) -> None:
    record = solved() if loss == "logistic" else cross_validate(DATA, "4", gammas=[0.1], taus=[1])
    wrong = {"loss": "hinge", "model": "best", "oracles": ("gpt",), "method": "magic", "positive": "maybe"}
    for name, word in wrong.items():
        report = verify(replace(record, request=replace(record.request, **{name: word})), DATA)
        assert not report.ok and any(f"request.{name}" in failure for failure in map(str, report.failures)), name
    report = verify(replace(record, request=replace(record.request, model="average")), DATA)
    assert not report.ok


def test_a_solver_s_record_holds_within_its_allowance_and_no_further() -> None:
    record = fit_one(DATA, tau=2, gamma=0.1, loss="logistic", backend="highs")
    assert record.support == solved("fit").support
    assert record.status == "proved" and 0.0 < record.allowance < 1e-3 * record.upper
    assert verify(record, DATA).ok
    for wrong in (
        replace(record, lower=record.objective * (1.0 + 1e-6)),
        replace(record, objective=record.objective * (1.0 + 1e-6)),
        replace(record, allowance=0.1 * record.upper),
        replace(record, status="proved", allowance=0.0, lower=record.lower * 0.999),
        replace(record, support=("x1", "x3")),
    ):
        assert not verify(wrong, DATA).ok


@pytest.mark.parametrize("kind", ["path", "fit"])
@pytest.mark.parametrize("name", ["accuracy", "auc", "brier"])
def test_measures_of_held_out_rows_without_such_rows_are_refused(kind: str, name: str) -> None:
    record = solved(kind)
    assert record.classes is not None
    altered_record = replace(record, classes=replace(record.classes, **{name: 0.5}))
    assert [failure.field for failure in verify(altered_record, DATA).failures] == [f"classes.{name}"]


@pytest.mark.parametrize("loss", ["logistic", "poisson", "squared"])
def test_a_mean_absolute_error_is_refused_where_no_search_computes_it(loss: str) -> None:
    data = weighted_rows(DATA, np.arange(DATA.n) % 2 + 1.0, "w") if loss == "squared" else DATA
    record = cross_validate(data, "4", gammas=[0.1], taus=[1], loss=loss)
    assert record.mae is None and verify(record, data).ok
    spread = replace(record, mae=float(np.sqrt(record.chosen_folds.error).sum()) / DATA.n)
    assert {failure.field for failure in verify(spread, data).failures} == {"mae"}


def test_branching_reports_its_fits() -> None:
    calls: list[tuple[int, int]] = []
    verify(solved(), DATA, progress=lambda done, total: calls.append((done, total)))
    of_branching = [done for done, total in calls if total > max(solved().folds.k, len(solved().table))]
    assert len(of_branching) > 10 and max(of_branching) > 1
    assert all(done <= total for done, total in calls)


@pytest.mark.parametrize("seed", [15, 24])
def test_columns_far_from_0_without_an_intercept_take_digits_of_the_objective(seed: int) -> None:
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((40, 3))
    margin = X @ [3.0, -3.0, 2.0]
    labels = (margin + 1.5 * generator.logistic(size=40) > 0.0).astype(float)
    far = as_two_classes(Dataset.from_arrays((X + 1e6) * [1.0, 1e5, 1e-3], labels))
    record = cross_validate(far, "2", gammas=[1e-4], taus=[3], loss="logistic", intercept="none", threads=1)
    assert verify(record, far).ok
    assert not verify(replace(record, refit=replace(record.refit, objective=20.0)), far).ok


@pytest.mark.parametrize("unit", [1.0, 1e3])
@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_a_coefficient_that_is_0_but_for_rounding_is_none_that_was_changed(loss: str, unit: float) -> None:
    X, y = (np.array([[0.7], [-0.7]] * 12) + 0.1) * unit, np.repeat([1.0, 2.0], 12)
    data = as_two_classes(Dataset.from_arrays(X, y - 1.0)) if loss == "logistic" else Dataset.from_arrays(X, y)
    record = cross_validate(data, "blocks:6", gammas=[0.001, 1.0], taus=[1], loss=loss)
    path = best_subsets(data, gammas=[1.0], taus=[1], loss=loss)
    assert abs(record.coefficients["x0"]) < 1e-15
    for right in (record, path, replace(record, coefficients={"x0": 3e-17 / unit})):
        found = verify(right, data)
        assert found.ok, found.failures
    wrong = verify(replace(record, coefficients={"x0": 1e-9}), data)
    assert [failure.field for failure in wrong.failures] == ["coefficients.x0"]


@pytest.mark.parametrize("seed", [3, 4, *slow([5, 6, 7])])
def test_supports_of_fits_through_all_counts_are_tied(seed: int) -> None:
    """On three rows two adjusted columns and the intercept fit exactly: what differs are the last digits."""
    X = np.random.default_rng(seed).normal(size=(5, 4))
    data = Dataset.from_arrays(X, np.array([3.0, 1.0, 4.0, 1.0, 0.0]))
    record = cross_validate(data, "forward:2", gammas=[0.006], taus=[0, 1], loss="poisson", adjust=("x0", "x2"))
    assert verify(record, data).failures == ()
