"""Inference by data splitting: half of the rows choose terms, the other half tests them, for many random splits.

Half of the rows choose a model by the whole procedure, and the other half tests the terms of this model. The results of
all splits are combined. The naive p-values of the selected model use the same rows for the choice and for the tests. A
feature may be selected because chance makes it fit these rows well. Such a feature then looks significant. The package
therefore does not compute naive p-values.

In split b of B, some rows choose a model with m_b terms, and the other rows test each of its terms without a ridge
penalty. If the model contains term j, let p be the p-value of the test of this term, and `p_jb = min(1, m_b p)`.
Otherwise let p_jb be 1. Let `g = max(0.05, 1 / B)`, and let p_j(k) be the k-th smallest p_jb of term j over the splits.
The combined p-value (Meinshausen, Meier and Buehlmann 2009) is

    P_j = min(1, (1 - log g) min_k (B / k) p_j(k)),    where k runs from `g B` to B.

**Proposition.** Let each test be valid given the rows that chose its model. Then, with probability at least `1 - a`,
every term with `P_j <= a` has a nonzero coefficient in at least one of the models that contain it. The splits may
depend on each other.

*Proof.* Let `u = a / (1 - log g)`. `P_j <= a` means that `#{b: p_jb <= u k / B} >= k` for some k. Let
`s_jb = sup_{g <= t <= 1} 1{p_jb <= u t} / t`. The mean of s_jb over b is then at least 1. If term j has coefficient 0,
p is uniform or larger, and the expectation of s_jb given the rows that chose the model is at most
`u (1 - log g) / m_b = a / m_b`. A model has at most m_b terms with coefficient 0. For one split, the expectations of
s_jb over these terms therefore sum to at most `a`. Markov's inequality gives the claim. []

**Interval.** The values of a coefficient that the same test does not reject form an interval (Dezeure et al. 2015). The
interval excludes 0 only if `P_j <= a`. Consider the coefficients that are the same in all models that contain them.
With probability at least `1 - a`, the intervals contain all these coefficients. An interval is finite only if at least
g B models contain the term.

**Test of a term.** Models are fitted by least squares for squared-error loss, and by maximum likelihood for logistic
and Poisson loss. The covariance of the coefficients is estimated by the jackknife over m units (rows, or groups that no
fold splits). Let d be the change of the coefficients by one Newton step when a unit is held out. The estimate is (m -
1) / m times the sum of d d' over the units. This is CV3 of MacKinnon, Nielsen and Webb (2023), or (m - 1) / m times CR3
(HC3 if the units are rows). The variances of the errors may differ from row to row. The tests use the t distribution
with the degrees of freedom of Satterthwaite (Bell and McCaffrey 2002). For the degrees of freedom, all errors are
assumed to have equal variances. The variance estimate then has a known mean and variance, and the degrees of freedom
are those of the scaled chi-squared distribution with this mean and variance. For a term of q columns, let `df` be the
smallest number of degrees of freedom of these columns, and W the Wald statistic. Then `(df - q + 1) W / (df q)` is
compared with the F distribution with q and `df - q + 1` degrees of freedom (Hotelling).

**Test of a factor.** The hypothesis is that the coefficients of all levels of the factor are equal. The test omits
levels that have no row in the testing half, or whose coefficient a single unit determines. It also omits the level
`(missing)`: a level with few rows would leave few degrees of freedom. The fit still has coefficients for the omitted
levels with rows. The tested hypothesis is that the coefficients of all other levels are equal. The hypothesis about the
factor implies the tested hypothesis, so the test is valid.
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
from sparsecv_mio.certificate.inference_checks import check_missing_draws
from sparsecv_mio.certificate.inference_parts import Inference, SplitResult, SplitTest, TermInference
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.restrictions import restrictions_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.reading_options import ABSENT
from sparsecv_mio.digits import several
from sparsecv_mio.errors import EXTRAS, BadInput
from sparsecv_mio.inference.draws import find_units, half_draws
from sparsecv_mio.model_space import word_of_factor
from sparsecv_mio.problem.glm_refit import are_rows_separated
from sparsecv_mio.targets import Loss, Values
from sparsecv_mio.thresholds import MAX_DRAWS
from sparsecv_mio.words import Intercept

INVERSE_SHARE = 20  # a term that less than 1 / 20 of the models contain has the p-value 1
DEPENDENT_RTOL = 1e-9  # share of the largest singular value of unit columns, up to which columns are dependent
MIN_UNEXPLAINED = 1e-9  # eigenvalue of I - H of a cluster, up to which the cluster alone determines a coefficient
CONSTANT_RTOL = 1e-12  # relative size of deviations from the mean up to which a column is constant
CONVERGED_RTOL = 1e-12  # relative change of the deviance at which a fit ends
REFIT_RTOL = 1e-7  # relative difference of numbers of two fits that converged separately
SURE = 1e-30  # p-values below this number count as equal
TOO_FEW = "too few rows or groups for the coefficients"
SEPARATED = "the rows are separated, so coefficients are not finite"


class _Fit(NamedTuple):
    """Coefficients of a fit without penalty, their jackknife covariance, and the degrees of freedom of each one."""

    coefficients: FloatArray
    covariance: FloatArray
    df: FloatArray


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
    tests: Sequence[tuple[float, float, float, int]], n_splits: int, level: float
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
        Bounds; None if the interval is not finite. The lower bound is above the upper one if every value is rejected.

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
    low, high = (_find_outermost_value(sign * estimate - reach, sign * estimate + reach, k) for sign in (1.0, -1.0))
    return low, -high


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
    clusters: IntArray,
) -> tuple[tuple[SplitTest, ...], str]:
    """Return the tests of the terms of a model on rows that did not choose it.

    Parameters
    ----------
    rows : Dataset
        Rows of the test, in the form of the loss.
    terms : sequence of sequences of str
        Columns of each term of the model.
    adjusted : sequence of str
        Adjustment columns, which the model contains without a test.
    loss : Loss
        Loss of the model.
    has_intercept : bool
        True if the model has an intercept.
    clusters : (n,) int array
        Unit of each row: itself, or its group.

    Returns
    -------
    tests : tuple of SplitTest
        Test of each term.
    note : str
        Reason why no term could be tested; empty if there is none.
    """
    Z, places = _make_columns(rows, terms, adjusted, has_intercept)
    estimable, independent = _find_estimable(Z)
    note = TOO_FEW if len(np.unique(clusters)) <= len(independent) else ""
    kept = Z[:, independent]
    if not note and not loss.is_quadratic and are_rows_separated(kept, rows.y, loss):
        note = SEPARATED
    fit = None if note else _fit(kept, rows, loss, clusters)
    place = {column: i for i, column in enumerate(independent.tolist())}
    tests = []
    for columns, own in zip(terms, places, strict=True):
        name = word_of_factor(columns) if len(columns) > 1 else columns[0]
        tested = [place[j] for j in own if fit and estimable[j] and fit.df[place[j]] > 0.0]
        tests.append(_test_term(name, fit, tested) if fit and tested else SplitTest(name))
    return tuple(tests), note


def _make_columns(
    rows: Dataset, terms: Sequence[Sequence[str]], adjusted: Sequence[str], has_intercept: bool
) -> tuple[FloatArray, list[list[int]]]:
    """Return the intercept, the adjustment columns and the columns of the terms, and the tested places of each term.

    Columns are centred if there is an intercept, because a large mean would hide their variation from the checks.
    Levels of a factor without rows are left out, and the most frequent one if the intercept and the other levels
    determine it: coefficients are then differences from this level. The level of missing values comes last, and is
    tested only if the factor has one other level.
    """
    index, X = {name: j for j, name in enumerate(rows.names)}, rows.X
    first = [np.ones((rows.n, 1))] if has_intercept else []
    if has_intercept:
        X = X - X.mean(axis=0)
        X = X * (np.linalg.norm(X, axis=0) > CONSTANT_RTOL * np.linalg.norm(rows.X, axis=0))
    base = np.hstack([*first, X[:, [index[name] for name in adjusted]]])
    blocks, places, count = [base], list[list[int]](), base.shape[1]
    for columns in terms:
        used = [index[name] for name in columns]
        is_missing = {index[name]: len(columns) > 1 and name.endswith(f"={ABSENT}") for name in columns}
        if len(columns) > 1:
            frequent = dict(zip(used, np.count_nonzero(rows.X[:, used], axis=0).tolist(), strict=True))
            used = sorted((j for j in used if X[:, j].any()), key=lambda j: (is_missing[j], -frequent[j]))
            n_references = int(not _find_estimable(np.hstack([base, X[:, used]]))[0][base.shape[1] :].all())
            used = used[n_references:]
            if list(is_missing.values()).count(False) <= n_references:
                is_missing = dict.fromkeys(is_missing, False)
        n_tested = sum(not is_missing[j] for j in used)
        blocks.append(X[:, used])
        places.append(list(range(count, count + n_tested)))
        count += len(used)
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


def _fit(Z: FloatArray, rows: Dataset, loss: Loss, clusters: IntArray) -> _Fit:
    """Fit independent columns without a penalty by statsmodels: least squares, or maximum likelihood."""
    from statsmodels.genmod import families
    from statsmodels.genmod.generalized_linear_model import GLM

    target, weights, unit = loss.target, rows.row_weights, np.abs(Z).max(axis=0)
    of_values = {Values.NUMBERS: families.Gaussian, Values.CLASSES: families.Binomial, Values.COUNTS: families.Poisson}
    family = of_values[target.values]()
    offset = None if rows.row_exposure is None else np.log(rows.row_exposure)
    weights = np.ones(rows.n) if weights is None else weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rare warnings on convergence, after which the standard errors are huge
        model = GLM(rows.y, Z / unit, family, offset=offset, var_weights=weights)
        fit = model.fit(atol=0.0, rtol=CONVERGED_RTOL, scale=1.0)
    variance = family.variance(fit.fittedvalues)
    residuals = (rows.y - fit.fittedvalues) / variance
    covariance, df = jackknife_covariance(Z / unit, weights * variance, residuals, clusters)
    return _Fit(np.asarray(fit.params) / unit, covariance / np.outer(unit, unit), df)


def jackknife_covariance(
    Z: FloatArray, weights: FloatArray, residuals: FloatArray, clusters: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the jackknife covariance CV3 of weighted least squares, and the degrees of freedom of each coefficient.

    Parameters
    ----------
    Z : (n, k) array
        Independent columns.
    weights, residuals : (n,) arrays
        Weights and residuals of the rows.
    clusters : (n,) int array
        Cluster of each row.

    Returns
    -------
    covariance : (k, k) array
        Covariance of the coefficients.
    df : (k,) array
        Degrees of freedom of Satterthwaite; 0 for a coefficient that a single cluster determines.
    """
    root, k = np.sqrt(weights), Z.shape[1]
    orthogonal, triangle = np.linalg.qr(Z * root[:, None])
    scaled, order = root * residuals, np.argsort(clusters, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    columns = np.linalg.inv(triangle).T  # the inner product of column j with Q'y is coefficient j
    changes, is_alone = np.empty((len(members), k)), np.zeros(k, dtype=np.bool_)
    mean, squares, products = np.zeros(k), np.zeros(k), np.zeros((k, k, k))
    for place, rows in enumerate(members):
        Q = orthogonal[rows]
        left, axes = np.linalg.eigh(np.eye(k) - Q.T @ Q)
        is_lost = left <= MIN_UNEXPLAINED
        inverse = np.where(is_lost, 0.0, 1.0 / np.where(is_lost, 1.0, left))
        turned = axes.T @ columns
        is_alone |= np.any(np.abs(turned[is_lost]) > REFIT_RTOL * np.linalg.norm(columns, axis=0), axis=0)
        changes[place] = axes @ (inverse * (axes.T @ (Q.T @ scaled[rows])))
        pulled = axes @ ((inverse[:, None] - 1.0) * turned)  # Q' (I - Q Q')^-1 Q times the columns
        of_cluster = (columns * pulled).sum(axis=0)
        mean += of_cluster
        squares += of_cluster**2 - (pulled**2).sum(axis=0) ** 2
        products += pulled.T[:, :, None] * pulled.T[:, None, :]
    moved = np.linalg.solve(triangle, changes.T)
    covariance = (len(members) - 1) / len(members) * moved @ moved.T
    df = mean**2 / (squares + (products**2).sum(axis=(1, 2)))
    return covariance, np.where(is_alone, 0.0, df)


def _test_term(name: str, fit: _Fit, places: list[int]) -> SplitTest:
    """Return the Wald test that the coefficients of a term are 0; a single coefficient has an estimate."""
    b, V = fit.coefficients[places], fit.covariance[np.ix_(places, places)]
    error, df = np.sqrt(np.diag(V)), float(fit.df[places].min())
    rest = df - len(b) + 1.0
    if not np.all(np.isfinite(error) & (error > 0.0)) or rest <= 0.0:
        return SplitTest(name)
    root = np.linalg.lstsq(V / np.outer(error, error), b / error, rcond=None)[0]
    p_value = float(stats.f.sf((b / error) @ root * rest / (df * len(b)), len(b), rest))
    if len(b) > 1:
        return SplitTest(name, p_value, df)
    return SplitTest(name, p_value, df, float(b[0]), float(error[0]))


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
            (place, len(split.tests), test)
            for place, split in enumerate(splits) for test in split.tests if test.term == name
        ]  # fmt: skip
        p_values = np.ones(len(splits))
        for place, size, test in found:
            p_values[place] = size * test.p_value
        tests = [
            (test.estimate, test.standard_error, test.df, size)
            for _, size, test in found if test.estimate is not None and test.standard_error is not None
        ]  # fmt: skip
        lower, upper = combine_intervals(tests, len(splits), level) or (None, None)
        is_empty = lower is not None and upper is not None and lower > upper
        ends = (None, None) if is_empty else (lower, upper)
        estimate = float(np.median([test[0] for test in tests])) if tests else None
        n_tested = sum(test.df > 0.0 for _, _, test in found)
        p_value = combine_p_values(p_values)
        combined.append(TermInference(name, len(found), p_value, estimate, *ends, is_empty, n_tested))
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
    halves = list(half_draws(dataset, folds, found.splits[-1].split + 1, found.plan.seed))
    splits = []
    for split in found.splits:
        rows = np.setdiff1d(np.arange(dataset.n), halves[split.split].rows)
        split = replace(split, n_test=len(rows))
        if split.gamma is not None:
            terms = list(dict.fromkeys(together.get(name, (name,)) for name in split.support))
            groups = units.of_row[rows]
            tests, note = test_terms(dataset.take(rows), terms, limits.adjust, record.loss, has_intercept, groups)
            split = replace(split, tests=tests, note=note)
        splits.append(split)
    plan = replace(found.plan, units=units.name, n_units=len(units.stratum), by_class=units.is_stratified)
    return Inference(plan, found.level, tuple(splits), combine_splits(splits, found.level))


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
    checks.read_numbers.append("models chosen on halves of the rows")
    if any(find_spec(package) is None for package in EXTRAS["inference"]):
        checks.only_read("inference", "its tests were not recomputed; install the extra `inference`")
        return
    is_old = any(term.n_tested is None for term in found.terms)
    if is_old and restrictions_of(record).count:
        checks.only_read("inference", "factor tests by a development version were not recomputed; run `infer` again")
        return
    numbers, requested = [split.split for split in found.splits], found.plan.requested
    is_ordered = numbers == sorted(set(numbers)) and len(numbers) > 0 and numbers[-1] < requested <= MAX_DRAWS
    right = checks.require(is_ordered, "inference.splits", "must be requested splits in ascending order")
    check_missing_draws(checks, record, found.plan, numbers, "inference")
    if not checks.require(0.0 < found.level < 1.0, "inference.level", "must be between 0 and 1") or not right:
        return
    try:
        again = summarise_inference(record, dataset, folds, found)
    except BadInput as error:
        checks.require(False, "folds", str(error))
        return
    for i, (said, tested) in enumerate(zip(found.splits, again.splits, strict=True)):
        checks.compare_fields(f"inference.splits[{i}]", said, tested, ("n_test", "note"))
        checks.compare_parts(f"inference.splits[{i}].tests", said.tests, tested.tests, _allow_rounding)
    combined = combine_splits(found.splits, found.level)
    if is_old:
        combined = tuple(replace(term, n_tested=None) for term in combined)
    checks.compare_parts("inference.terms", found.terms, combined, _allow_rounding)
    checks.compare_fields("inference.plan", found.plan, again.plan, ("units", "n_units", "by_class"))
    left_out = found.plan.truncated <= requested - len(numbers)
    words = "must be at most the number of requested splits without a result"
    checks.require(left_out, "inference.plan.truncated", words)
    fields = ("plan.requested", "plan.truncated", "plan.seed", "splits[].split")
    checks.mark_bounded_fields(*(f"inference.{name}" for name in fields))
    checks.end_part(_describe_checked_tests(found))


def _describe_checked_tests(found: Inference) -> str:
    """Return the numbers of the tested models, and of the splits whose p-values are 1 for want of a model."""
    failed, tested = len(found.splits) - found.n_chosen, several(found.n_chosen, "model")
    ones = f" (p-value 1 for {several(failed, 'split')} without a model)" if failed else ""
    return f"tests of {tested} on the rows that did not choose them, and the combined p-values{ones}"


def _allow_rounding(part: Any, name: str) -> float:
    """Return the maximum difference of a number of a fit, or of combined fits, that converged separately."""
    spread = getattr(part, "standard_error", None) or 0.0
    slack = SURE if name == "p_value" else spread * REFIT_RTOL if name == "estimate" else 0.0
    return float(REFIT_RTOL * abs(getattr(part, name)) + slack)
