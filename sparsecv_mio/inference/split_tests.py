"""Inference by data splitting: tests of chosen terms on rows that did not choose them, combined over random splits.

Half of the rows choose a model by the whole procedure, and the other half tests its terms. The naive p-values of the
selected model use the same rows for the choice and for the tests. Noise that was selected because it fits these rows
well then looks significant, so the package does not compute them.

In split b of B, some rows choose a model with m_b terms, and the other rows test each of its terms without a ridge
penalty. The p-value of term j is `p_jb = min(1, m_b p)` if the model contains the term, and 1 otherwise. Let
`g = max(0.05, 1 / B)`, and let p_j(k) be the k-th smallest p-value of term j. The combined p-value (Meinshausen, Meier
and Buehlmann 2009) is

    P_j = min(1, (1 - log g) min_k (B / k) p_j(k)),    k from g B to B.

**Proposition.** If each test is valid given the rows that chose its model, then with probability at least `1 - a` no
term with `P_j <= a` has coefficient 0 in every model that contains it. The splits may depend on each other.

*Proof.* Let `u = a / (1 - log g)`. `P_j <= a` means that `#{b: p_jb <= u k / B} >= k` for some k. Then the mean over b
of `s_jb = sup_{t >= g} 1{p_jb <= u t} / t` is at least 1. For a uniform p, the expectation of s_jb given the rows that
chose is at most `u (1 - log g) / m_b = a / m_b`. The sum over the at most m_b such terms of a model is at most a, and
Markov's inequality gives the claim. []

**Interval.** The values of a coefficient that the same test does not reject form an interval (Dezeure et al. 2015). It
excludes 0 only if `P_j <= a`. If a coefficient is the same in all models that contain it, all intervals together
contain such coefficients with probability `1 - a`. An interval is finite only if at least g B models contain the term.

**Test of a term.** Squared error: least squares and t tests. Logistic loss: maximum likelihood and Wald tests. Poisson
loss: the same with the dispersion `max(1, X^2 / df)`. The tests use the t or F distribution with df = rows minus rank.
If rows have weights, or folds keep groups of rows together, the covariance is the jackknife CR3 over rows or groups
(Bell and McCaffrey 2002) of one Newton step, and df = rows or groups minus rank.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.linalg import qr

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import Checks
from sparsecv_mio.certificate.inference_parts import Inference, SplitResult, SplitTest, TermInference
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import restrictions_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.errors import EXTRAS, BadInput
from sparsecv_mio.inference.draws import find_units, half_draws
from sparsecv_mio.model_space import word_of_factor
from sparsecv_mio.problem.glm_refit import are_rows_separated
from sparsecv_mio.targets import Loss
from sparsecv_mio.thresholds import MAX_DRAWS
from sparsecv_mio.words import Intercept

INVERSE_SHARE = 20  # a term that less than 1 / 20 of the models contain has the p-value 1
DEPENDENT_RTOL = 1e-9  # share of the largest singular value of unit columns, up to which columns are dependent
MIN_UNEXPLAINED = 1e-9  # eigenvalue of I - H of a cluster, up to which the cluster alone determines a coefficient
CONVERGED_RTOL = 1e-12  # relative change of the deviance at which a fit ends
REFIT_RTOL = 1e-7  # relative difference of numbers of two fits that converged separately
SURE = 1e-30  # p-values below this number count as equal
TOO_FEW, SEPARATED, ALONE = (
    "too few rows or groups for the coefficients",
    "the rows are separated, so coefficients are not finite",
    "a single group or row determines a coefficient",
)


class _Fit(NamedTuple):
    """Coefficients of a fit without penalty, with the weights and residuals of its last weighted least-squares step."""

    coefficients: FloatArray
    covariance: FloatArray
    weights: FloatArray
    residuals: FloatArray


def _counts_and_factor(n_splits: int) -> tuple[IntArray, float]:
    """Return the numbers k of smallest p-values to compare, and the factor of the search over them."""
    counts = np.arange(math.ceil(n_splits / INVERSE_SHARE), n_splits + 1)
    return counts, 1.0 + math.log(min(n_splits, INVERSE_SHARE))


def combine_p_values(p_values: FloatArray) -> float:
    """Return the combined p-value of a term.

    Parameters
    ----------
    p_values : (B,) array
        P-values of the splits times the number of terms of the model; 1 for a model without the term.

    Examples
    --------
    >>> combine_p_values(np.array([0.03])), round(combine_p_values(np.full(50, 0.001)), 6)
    (0.03, 0.003996)
    """
    k, factor = _counts_and_factor(len(p_values))
    ranked = np.sort(np.minimum(p_values, 1.0))
    return min(1.0, float(factor * (ranked[k - 1] * len(ranked) / k).min()))


def combine_intervals(
    tests: Sequence[tuple[float, float, int, int]], n_splits: int, level: float
) -> tuple[float, float] | None:
    """Return the interval of a coefficient that contains every value whose combined p-value exceeds `1 - level`.

    Parameters
    ----------
    tests : sequence of (estimate, standard error, degrees of freedom, number of terms)
        Tests of the models that contain the term.
    n_splits : int
        Number of splits.
    level : float
        Level of all intervals together.

    Returns
    -------
    tuple of two float, or None
        Bounds; None if the interval is not finite, or if every value is rejected.

    Examples
    --------
    >>> low, high = combine_intervals([(2.0, 0.5, 20, 1)], 1, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.957, 3.043)
    """
    k, factor = _counts_and_factor(n_splits)
    k = k[k <= len(tests)]  # with fewer exclusions than the remaining numbers every value is accepted
    if not k.size:
        return None
    estimate, error, df, size = (np.array(column, dtype=np.float64) for column in zip(*tests, strict=True))
    reach = error * stats.t.isf((1.0 - level) * k[:, None] / (factor * n_splits * 2.0 * size), df)
    ends = [_find_outermost_value(sign * estimate - reach, sign * estimate + reach, k) for sign in (1.0, -1.0)]
    low, high = ends[0], -ends[1]
    return (low, high) if low <= high else None


def _find_outermost_value(lower: FloatArray, upper: FloatArray, k: IntArray) -> float:
    """Return the smallest value that fewer than k of the intervals in each row exclude; each row has a number k."""
    smallest = -math.inf
    for low, high, count in zip(np.sort(lower), np.sort(upper), k.tolist(), strict=True):
        n_containing = np.arange(1, len(low) + 1) - np.searchsorted(high, low)
        smallest = max(smallest, *low[n_containing >= len(low) - count + 1][:1].tolist() or [math.inf])
    return smallest


def test_terms(
    rows: Dataset,
    terms: Sequence[Sequence[str]],
    adjusted: Sequence[str],
    loss: Loss,
    has_intercept: bool,
    clusters: IntArray | None,
) -> tuple[tuple[SplitTest, ...], int, str]:
    """Return the tests of the terms of a model on rows that did not choose it.

    Parameters
    ----------
    rows : Dataset
        Rows of the test, in the form of the loss.
    terms : sequence of sequences of str
        Columns of each term of the model.
    adjusted : sequence of str
        Adjusted columns, which the model contains without a test.
    loss : Loss
        Loss of the model.
    has_intercept : bool
        True if the model has an intercept.
    clusters : (n,) int array, optional
        Group of each row; None if the rows are independent and have no weights.

    Returns
    -------
    tests : tuple of SplitTest
        Test of each term.
    df : int
        Denominator degrees of freedom; at most 0 if there are too few rows or groups.
    note : str
        Reason why no term could be tested; empty if there is none.
    """
    Z, places = _make_columns(rows, terms, adjusted, has_intercept)
    estimable, independent = _find_estimable(Z)
    df = (rows.n if clusters is None else len(np.unique(clusters))) - len(independent)
    note = TOO_FEW if df < 1 else ""
    kept = Z[:, independent]
    if not note and not loss.is_quadratic and are_rows_separated(kept, rows.y, loss):
        note = SEPARATED
    fit = None if note else _fit(kept, rows, loss, df)
    if fit is not None and clusters is not None:
        covariance = jackknife_covariance(kept, fit.weights, fit.residuals, clusters)
        fit, note = (None, ALONE) if covariance is None else (fit._replace(covariance=covariance), "")
    place = {column: i for i, column in enumerate(independent.tolist())}
    tests = []
    for columns, own in zip(terms, places, strict=True):
        name = word_of_factor(columns) if len(columns) > 1 else columns[0]
        is_testable = fit is not None and len(own) > 0 and bool(estimable[own].all())
        tests.append(_test_term(name, fit, [place[j] for j in own], df) if is_testable and fit else SplitTest(name))
    return tuple(tests), df, note


def _make_columns(
    rows: Dataset, terms: Sequence[Sequence[str]], adjusted: Sequence[str], has_intercept: bool
) -> tuple[FloatArray, list[list[int]]]:
    """Return the intercept, the adjusted columns and the columns of the terms, and the places of each term.

    The first level of a factor is left out if the intercept and the other levels determine it.
    """
    index = {name: j for j, name in enumerate(rows.names)}
    first = [np.ones((rows.n, 1))] if has_intercept else []
    base = np.hstack([*first, rows.X[:, [index[name] for name in adjusted]]])
    blocks, places, count = [base], list[list[int]](), base.shape[1]
    for columns in terms:
        block = rows.X[:, [index[name] for name in columns]]
        if len(columns) > 1 and not _find_estimable(np.hstack([base, block]))[0][base.shape[1] :].all():
            block = block[:, 1:]
        blocks.append(block)
        places.append(list(range(count, count + block.shape[1])))
        count += block.shape[1]
    return np.hstack(blocks), places


def _find_estimable(Z: FloatArray) -> tuple[BoolArray, IntArray]:
    """Return which columns have a unique coefficient, and places of as many independent columns as possible."""
    length = np.linalg.norm(Z, axis=0)
    unit = Z / np.where(length > 0.0, length, 1.0)
    triangle, order = qr(unit, mode="r", pivoting=True)
    _, sizes, turned = np.linalg.svd(triangle[: Z.shape[1]])
    rank = int((sizes > DEPENDENT_RTOL * sizes.max(initial=0.0)).sum())
    is_estimable = np.zeros(Z.shape[1], dtype=np.bool_)
    is_estimable[order] = np.linalg.norm(turned[rank:], axis=0) <= math.sqrt(DEPENDENT_RTOL)
    return is_estimable, np.sort(order[:rank])


def _fit(Z: FloatArray, rows: Dataset, loss: Loss, df: int) -> _Fit:
    """Fit independent columns without a penalty by statsmodels: least squares, or maximum likelihood."""
    from statsmodels.genmod import families
    from statsmodels.genmod.generalized_linear_model import GLM

    target, weights, unit = loss.target, rows.row_weights, np.abs(Z).max(axis=0)
    family = (
        families.Binomial if target.has_classes else families.Poisson if target.has_counts else families.Gaussian
    )()
    offset = None if rows.row_exposure is None else np.log(rows.row_exposure)
    weights = np.ones(rows.n) if weights is None else weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rare warnings on convergence, after which the standard errors are huge
        model = GLM(rows.y, Z / unit, family, offset=offset, var_weights=weights)
        fit = model.fit(atol=0.0, rtol=CONVERGED_RTOL, scale=1.0)
    dispersion = 1.0 if target.has_classes else max(1.0 * target.has_counts, float(fit.pearson_chi2) / df)
    covariance = np.asarray(fit.normalized_cov_params) * dispersion / np.outer(unit, unit)
    variance = family.variance(fit.fittedvalues)
    residuals = (rows.y - fit.fittedvalues) / variance
    return _Fit(np.asarray(fit.params) / unit, covariance, weights * variance, residuals)


def jackknife_covariance(
    Z: FloatArray, weights: FloatArray, residuals: FloatArray, clusters: IntArray
) -> FloatArray | None:
    """Return the jackknife covariance CR3 of weighted least squares; None if one cluster determines a coefficient.

    Parameters
    ----------
    Z : (n, k) array
        Independent columns.
    weights, residuals : (n,) arrays
        Weights and residuals of the rows.
    clusters : (n,) int array
        Cluster of each row.
    """
    root = np.sqrt(weights)
    orthogonal, triangle = np.linalg.qr(Z * root[:, None])
    scaled, order = root * residuals, np.argsort(clusters, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    changes = np.empty((len(members), Z.shape[1]))
    for place, rows in enumerate(members):
        Q = orthogonal[rows]
        left, axes = np.linalg.eigh(np.eye(Q.shape[1]) - Q.T @ Q)
        if left[0] <= MIN_UNEXPLAINED:
            return None
        changes[place] = axes @ ((axes.T @ (Q.T @ scaled[rows])) / left)
    moved = np.linalg.solve(triangle, changes.T)
    return (len(members) - 1) / len(members) * moved @ moved.T


def _test_term(name: str, fit: _Fit, places: list[int], df: int) -> SplitTest:
    """Return the Wald test that the coefficients of a term are 0; a single coefficient has an estimate."""
    b, V = fit.coefficients[places], fit.covariance[np.ix_(places, places)]
    error = np.sqrt(np.diag(V))
    if not np.all(np.isfinite(error) & (error > 0.0)):
        return SplitTest(name)
    root = np.linalg.lstsq(V / np.outer(error, error), b / error, rcond=None)[0]
    p_value = float(stats.f.sf((b / error) @ root / len(b), len(b), df))
    if len(b) > 1:
        return SplitTest(name, p_value)
    return SplitTest(name, p_value, float(b[0]), float(error[0]))


def combine_splits(splits: Sequence[SplitResult], level: float) -> tuple[TermInference, ...]:
    """Return the combined results of the terms of all models, in the order of their p-values.

    Parameters
    ----------
    splits : sequence of SplitResult
        Tested models.
    level : float
        Level of all intervals together.
    """
    combined = []
    for name in dict.fromkeys(test.term for split in splits for test in split.tests):
        found = [
            (place, split.df, len(split.tests), test)
            for place, split in enumerate(splits) for test in split.tests if test.term == name
        ]  # fmt: skip
        p_values = np.ones(len(splits))
        for place, _, size, test in found:
            p_values[place] = size * test.p_value
        tests = [
            (test.estimate, test.standard_error, df, size)
            for _, df, size, test in found if test.estimate is not None and test.standard_error is not None
        ]  # fmt: skip
        lower, upper = combine_intervals(tests, len(splits), level) or (None, None)
        estimate = float(np.median([test[0] for test in tests])) if tests else None
        combined.append(TermInference(name, len(found), combine_p_values(p_values), estimate, lower, upper))
    return tuple(sorted(combined, key=lambda term: (term.p_value, -term.n_chosen)))


def summarise_inference(record: Record, dataset: Dataset, folds: FoldPlan, found: Inference) -> Inference:
    """Return an inference in which the units, all tests and their combination are computed from the chosen models.

    Parameters
    ----------
    record : Record
        Record of all rows.
    dataset : Dataset
        All rows, with weights, in the form of the loss.
    folds : FoldPlan
        Folds of all rows, which determine the units that are in one half.
    found : Inference
        Inference with the models of the halves, in ascending order; its tests are replaced.
    """
    units, limits = find_units(dataset, folds), restrictions_of(record)
    has_intercept, together = record.data.intercept != Intercept.NONE, dict[str, tuple[str, ...]]()
    for columns in limits.count:
        together |= dict.fromkeys(columns, columns)
    clusters = None if dataset.row_weights is None else np.arange(dataset.n)
    if len(units.stratum) < dataset.n:
        clusters = units.of_row
    halves = list(half_draws(dataset, folds, found.splits[-1].split + 1, found.plan.seed))
    splits = []
    for split in found.splits:
        rows = np.setdiff1d(np.arange(dataset.n), halves[split.split].rows)
        split = replace(split, n_test=len(rows))
        if split.gamma is not None:
            terms = list(dict.fromkeys(together.get(name, (name,)) for name in split.support))
            groups = None if clusters is None else clusters[rows]
            tests, df, note = test_terms(dataset.take(rows), terms, limits.adjust, record.loss, has_intercept, groups)
            split = replace(split, df=df, tests=tests, note=note)
        splits.append(split)
    plan = replace(found.plan, units=units.name, n_units=len(units.stratum), by_class=units.is_stratified)
    covariance: Any = "classical" if clusters is None else "jackknife"
    return Inference(plan, found.level, covariance, tuple(splits), combine_splits(splits, found.level))


def check_inference(checks: Checks, record: Record, dataset: Dataset, folds: FoldPlan) -> None:
    """Check the claims of a record about inference by splits, if it has them; only read how halves chose their models.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : Record
        Record of `solve`.
    dataset : Dataset
        Data of the record, with weights.
    folds : FoldPlan
        Folds of the record.
    """
    found = record.inference
    if found is None:
        return
    checks.read_numbers.append("models that halves of the rows chose")
    if any(find_spec(package) is None for package in EXTRAS["inference"]):
        checks.only_read("inference", "its tests require the extra `inference`")
        return
    numbers, requested = [split.split for split in found.splits], found.plan.requested
    is_ordered = numbers == sorted(set(numbers)) and len(numbers) > 0 and numbers[-1] < requested <= MAX_DRAWS
    right = checks.require(is_ordered, "inference.splits", "must be requested splits in ascending order")
    if not checks.require(0.0 < found.level < 1.0, "inference.level", "must be between 0 and 1") or not right:
        return
    try:
        again = summarise_inference(record, dataset, folds, found)
    except BadInput as error:
        checks.require(False, "folds", str(error))
        return
    for i, (said, tested) in enumerate(zip(found.splits, again.splits, strict=True)):
        checks.compare_fields(f"inference.splits[{i}]", said, tested, ("n_test", "df", "note"))
        checks.compare_parts(f"inference.splits[{i}].tests", said.tests, tested.tests, _allow_rounding)
    checks.compare_parts("inference.terms", found.terms, combine_splits(found.splits, found.level), _allow_rounding)
    checks.compare_fields("inference.plan", found.plan, again.plan, ("units", "n_units", "by_class"))
    checks.compare_fields("inference", found, again, ("covariance",))
    left_out = found.plan.truncated <= requested - len(numbers)
    checks.require(left_out, "inference.plan.truncated", "must be at most the number of the requested splits left")
    fields = ("plan.requested", "plan.truncated", "plan.seed", "splits[].split")
    checks.mark_bounded_fields(*(f"inference.{name}" for name in fields))
    checks.end_part(f"tests of {len(numbers)} models on the rows that did not choose them, and their combination")


def _allow_rounding(part: Any, name: str) -> float:
    """Return the maximum difference of a number of a fit, or of combined fits, that converged separately."""
    spread = getattr(part, "standard_error", None) or 0.0
    slack = SURE if name == "p_value" else spread * REFIT_RTOL if name == "estimate" else 0.0
    return float(REFIT_RTOL * abs(getattr(part, name)) + slack)
