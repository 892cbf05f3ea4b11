"""Verification of records with logistic or Poisson loss: refits by the definition, and optimality by branching.

All computations use `problem.glm_objective`. A support is optimal if no other support of its size has a lower
objective. The proof uses one rule: adding columns never raises the minimum objective, so no subset of a set of columns
is better than the whole set. Starting from all columns, branching removes or includes one column at a time until the
bound of every remaining part is above the best support found. It needs few features and few fits (`MOST_FITS`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate import optimality
from sparsecv_mio.certificate.accuracy import class_quality
from sparsecv_mio.certificate.adjusted import adjustment_columns
from sparsecv_mio.certificate.checked_fields import MOST_FITS, Checks
from sparsecv_mio.certificate.claims import check_claims, check_grid, check_requested_grid, find_row
from sparsecv_mio.certificate.enumeration import positions
from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, NearRecord, PathRecord
from sparsecv_mio.certificate.glm_single_rows import NARROW, LeftOutAlone, SingleRows
from sparsecv_mio.certificate.predicting import probabilities
from sparsecv_mio.certificate.records import Classes, NestedClasses, PathRow, Record, Refit, TableRow
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.rows_of_folds import RowsOfFolds
from sparsecv_mio.data.two_classes import resolve_class
from sparsecv_mio.data.weights import Scored
from sparsecv_mio.model_space import NONE
from sparsecv_mio.problem import glm_objective
from sparsecv_mio.problem.glm_objective import GlmModel
from sparsecv_mio.problem.objective import ridge_weights, standard_error, varying_columns
from sparsecv_mio.units import (
    CROSSING_RTOL,
    FOLLOWS_RTOL,
    LOSS_ROUNDING,
    LOSS_SLACK,
    MARGINS_OFF,
    NEWTON_RTOL,
    ROUNDING,
    TINY,
)
from sparsecv_mio.words import Loss

SLOPE_ROUNDING = 64.0 * ROUNDING  # rounding of a gradient, relative to the terms of its sum
SPREAD_RTOL = 10.0 * FOLLOWS_RTOL  # share of the CV error: tolerance of fold losses for their standard error
MANY_ALONE = 200  # single-row folds; fewer folds are fitted one by one, a few ms each
UNEVEN = 2  # multiple of its share of fits that the first fold may use

Support = tuple[int, ...]
Asked = tuple[Support, float, bytes]  # support, support, gamma, and a digest of the rows
StoredWithLoss = Record | PathRecord | FitRecord | NearRecord | CommonRecord
LOSS_OF_ROWS = {Loss.LOGISTIC: "log loss", Loss.POISSON: "half deviance"}
EXACT_DEVIANCE = 1e-26  # half deviance of a fit through all counts, per row and count: rates are right to 1e-13


@dataclass(frozen=True, eq=False)
class Truth:
    """Bounds on the held-out loss over all optimal supports of a fold, including ties."""

    low: float
    high: float


class TooManyFits(Exception):
    """The comparison of supports takes more fits than allowed."""


def fit_limit_message(record: StoredWithLoss) -> str:
    """Return the message that verifying optimality takes too many fits, with alternatives."""
    fewer = "fewer features, sizes or gammas take fewer"
    if isinstance(record, Record | PathRecord | FitRecord) and has_proof(record):
        fewer = "the command that made the record writes a proof with --proof FILE, for sparsecv check"
    return f"it takes more than {MOST_FITS:,} fits; {fewer}"


def has_proof(record: Record | PathRecord | FitRecord) -> bool:
    """Return True if `--proof` covers the command of the record, for a loss other than squared error."""
    if record.loss is not Loss.LOGISTIC or record.data.weights is not None or record.data.class_weight is not None:
        return False
    if isinstance(record, Record) and (record.request.na_within or record.request.scale_within):
        return False
    if isinstance(record, Record) and record.status != "proved":
        return False
    holder = record.side if isinstance(record, FitRecord) else record.request
    return holder is None or holder.restrictions in (None, NONE)


def objective_lower_bound(model: GlmModel) -> float:
    """Return a lower bound on the minimum objective of a support, from a nearby model and its decrement."""
    return model.objective - model.decrement**2


class GlmDesign:
    """The data of a record with logistic or Poisson loss, and fits to them.

    Parameters
    ----------
    record : Record, PathRecord, FitRecord, NearRecord or CommonRecord
        Record.
    dataset : Dataset
        Data in the form of the loss.
    seen : Dataset, optional
        Expanded table with scaled columns, if folds do not see the rows of the data.
    """

    def __init__(
        self, record: Record | PathRecord | FitRecord | NearRecord | CommonRecord, dataset: Dataset,
        seen: Dataset | None = None,
    ) -> None:  # fmt: skip
        self.whole, self.scale, self.intercept = dataset, record.data.scale, record.data.intercept
        self.dataset, self.own = (dataset, False) if seen is None else (seen, True)
        self.loss = record.loss
        if isinstance(record, FitRecord):
            restrictions = None if record.side is None else record.side.restrictions
        else:
            restrictions = record.request.restrictions
        out = () if restrictions is None else restrictions.force_out
        adjusted = adjustment_columns(record)
        forced = () if restrictions is None else restrictions.forced_columns
        self.columns = [j for j in varying_columns(dataset.X).tolist() if dataset.names[j] not in out]
        self.forced = frozenset(j for j in self.columns if dataset.names[j] in forced)
        self.free = frozenset(j for j in self.columns if dataset.names[j] in adjusted)
        self.fits = 0
        self._models: tuple[dict[Asked, GlmModel], dict[Asked, GlmModel]] = {}, {}  # exact, and near the minimum

    def fit(
        self, support: Support, gamma: float, rows: IntArray | None = None, near: bool = False,
        start: GlmModel | None = None,
    ) -> GlmModel:  # fmt: skip
        """Return the fit of a support to some rows or to all rows; `fits` counts each fit once.

        With `near`, a point near the minimum is enough, from which `objective_lower_bound` gives a bound. `start` is a
        model of these rows.
        """
        key = support, gamma, b"" if rows is None else blake2b(rows.tobytes()).digest()
        known, rough = self._models
        if key in known or (near and key in rough):
            return known.get(key) or rough[key]
        self.fits += key not in rough
        kept = rough if near and self.intercept != "none" else known  # steps in double precision end near the minimum
        if len(kept) == MOST_FITS:  # a few kilobytes for each fit
            kept.clear()
        dataset, scale = (self.whole, self.scale) if rows is None or not self.own else (self.dataset, "none")
        kept[key] = glm_objective.fit_of_data(
            dataset, self.loss, support, ridge_weights(support, self.free, gamma), scale=scale,
            intercept=self.intercept, rows=rows, near=near, start=rough.get(key, start),
        )  # fmt: skip
        return kept[key]

    def held_out(self, model: GlmModel, rows: IntArray) -> tuple[float, float]:
        """Return the loss of some rows, and a bound on its rounding error."""
        loss, doubt = model.held_out(self.dataset, rows, MARGINS_OFF)
        return loss, CROSSING_RTOL * loss + doubt + TINY

    def hold_out_singly(
        self, support: Support, gamma: float, rows: IntArray, tell: Callable[[int], None]
    ) -> tuple[SingleRows, FloatArray]:  # fmt: skip
        """Return the held-out results of a support for single rows, and the rounding errors of the losses.

        Values are nan if the Newton steps do not converge.
        """
        try:
            alone = LeftOutAlone(self.fit(support, gamma), self.dataset)
        except np.linalg.LinAlgError:
            return SingleRows(*np.full((4, len(rows)), np.nan)), np.zeros(len(rows))
        found = alone.held_out(rows, tell)
        return found, CROSSING_RTOL * found.losses + alone.rises(rows, found, MARGINS_OFF) + TINY

    def rounding(self, model: GlmModel) -> float:
        """Return the rounding error of an objective; it is larger for columns far from 0 relative to their spread."""
        total = self.whole.weight_of(slice(0, self.whole.n))
        level = np.abs(self.whole.X[:, list(model.support)].mean(axis=0))
        offset = float(level @ np.abs(model.beta))
        return NEWTON_RTOL * model.objective + LOSS_ROUNDING * total * offset + TINY

    def coefficient_rounding(self, model: GlmModel) -> FloatArray:
        """Return (s,) rounding errors of coefficients from those of gradients, for columns of equal size.

        Some coefficients may be 0. O(n s).
        """
        y, v = glm_objective.encode_all_targets(self.whole, model.loss)
        margins = model.loss.signs(y) * model.predictors(self.whole.X)
        slope = SLOPE_ROUNDING * float(np.sum(model.loss.sizes(margins, y, v)))
        return np.asarray(slope * np.abs(model.inverse).sum(axis=1)[len(model.theta) - len(model.support) :])

    def remaining_fits(self, begun: int, fold: int, k: int) -> int:
        """Return the remaining number of fits of a check; the first fold gets few, as it predicts the others."""
        return (MOST_FITS if fold else min(UNEVEN * MOST_FITS // k, MOST_FITS)) - (self.fits - begun)

    def n_columns(self, tau: int) -> int:
        """Return the number of columns of a support of `tau` features, with the adjusted columns."""
        return tau + len(self.free)

    def positions(self, features: Iterable[str]) -> tuple[int, ...] | None:
        """Return the sorted columns of a support that a record states; None if it is no set of features.

        Parameters
        ----------
        features : iterable of str
            Names of its features, without adjusted columns.
        """
        names = self.dataset.names
        return positions(features, {names[j]: j for j in self.columns}, (names[j] for j in self.free))

    def best(self, tau: int, gamma: float, rows: IntArray | None, start: Support, most: int) -> list[Support] | None:
        """Return all optimal supports of at most tau features; None if this takes too many fits."""
        if most <= 0:
            return None
        tried = [self.fit(tuple(sorted(start)), gamma, rows, near=True)]

        def tie_threshold(models: list[GlmModel] = tried) -> float:
            return min(model.objective for model in models) * (1.0 + NEWTON_RTOL) + TINY

        try:
            for leaf in self.leaves(tau, gamma, rows, tie_threshold, most):
                tried.append(leaf)
        except TooManyFits:
            return None
        few = {model.support for model in tried if objective_lower_bound(model) <= tie_threshold()}
        exact = [self.fit(support, gamma, rows) for support in few]
        return sorted(model.support for model in exact if model.objective <= tie_threshold(exact))

    def leaves(
        self, tau: int, gamma: float, rows: IntArray | None, level: Callable[[], float], most: int
    ) -> Iterator[GlmModel]:
        """Yield models near the minimum objective of their supports, of tau features or all available ones.

        All supports with an objective up to a level are among them.

        Raises
        ------
        TooManyFits
            If more than `most` fits are needed.
        """
        enough, every, size = self.fits + most, tuple(self.columns), self.n_columns(tau)
        waiting: list[tuple[frozenset[int], frozenset[int], GlmModel | None]] = [(self.forced, frozenset(), None)]
        while waiting:
            if self.fits > enough:
                raise TooManyFits
            inside, outside, above = waiting.pop()
            available = tuple(j for j in every if j not in outside)
            support = tuple(sorted(inside)) if len(inside) >= size else available
            whole = self.fit(support, gamma, rows, near=True, start=above)
            if objective_lower_bound(whole) > level():
                continue
            if len(inside) >= size or len(available) <= size:
                yield whole
                continue
            free = [i for i, j in enumerate(available) if j not in inside]
            j = available[max(free, key=lambda i: abs(float(whole.beta[i] * whole.unit[i])))]
            waiting += [(inside | {j}, outside, whole), (inside, outside | {j}, whole)]


def check_classes(
    checks: Checks, record: Record, dataset: Dataset, plan: FoldPlan,
    supports_of: Callable[[optimality.ReportedPair], list[Support] | None], own: RowsOfFolds | None = None,
) -> bool:  # fmt: skip
    """Check a record with logistic or Poisson loss; return True if every check could be completed.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : Record
        The record.
    dataset : Dataset
        Data in the form of the loss.
    plan : FoldPlan
        Folds of the record.
    supports_of : callable
        Function that returns the supports of a reported pair by fold, as positions among the columns that may be in
        one; None if they are invalid.
    own : RowsOfFolds, optional
        Expanded table of fold-specific preprocessing.

    Returns
    -------
    bool
        True if every check could be completed.
    """
    check_claims(checks, record, dataset, plan)
    design = GlmDesign(record, dataset, None if own is None else own.dataset)
    if not check_target(checks, record, dataset, plan.all_scored):
        return False
    plan = plan if own is None else own.folds
    word, classes = record.request.positive, record.classes
    right = (
        word is None or classes is None or resolve_class(word, (classes.negative, classes.positive)) == classes.positive
    )
    checks.require(right, "request.positive", "is not the positive class")
    checks.end_part("the positive class" if record.classes is not None else "the loss")
    pairs: list[tuple[optimality.ReportedPair, list[Support]]] = []
    for pair in optimality.reported_pairs(record):
        placed = supports_of(pair)
        if placed is None:
            return False
        supports = [tuple(design.columns[place] for place in support) for support in placed]
        pairs.append((pair, supports))
        _errors(checks, record, design, plan, pair, supports)
    for name in ("gamma", "tau"):
        said, answered = getattr(record.refit, name), getattr(record, name)
        checks.require(said == answered, f"refit.{name}", f"is {said!r}, the answer's is {answered!r}")
    _check_model(checks, Claim(record, record.refit, "", "refit."), design, record.request.gap)
    checks.end_part("coefficients, intercept and objective of the fit on all rows")
    _optimality(checks, record, design, plan, pairs)
    if record.training_gap is not None:
        checks.only_read("training_gap", "the objectives of open folds are not branched over")
    _say_read(checks, record)
    return True


def _say_read(checks: Checks, record: Record) -> None:
    """Record the fields that no computation from the data can check."""
    if any(row.folds_decided < row.folds for row in record.table):
        reason = "of pairs that are not decided it is read"
        checks.leaves(reason, *(f"table[].{name}" for name in ("cv_error", "standard_error", "folds_decided")))
    for name in (
        "request.gap",
        "allowance",
        "tie_width",
        "least.allowance",
        "least.tie_width",
        "region.",
        "so_far.region.",
    ):
        checks.leaves("within that it is read", name)


def check_target(checks: Checks, record: StoredWithLoss, dataset: Dataset, rows: IntArray) -> bool:
    """Check the target of a record: the names of two classes, and the loss of the best constant in some rows."""
    if record.loss is not Loss.POISSON:
        return check_names(checks, record.classes, dataset, rows)
    assert record.counts is not None
    checks.require_equal("counts.certified", record.counts.certified, "half_deviance")
    null = glm_objective.null_loss(dataset, Loss.POISSON, rows)
    checks.close("counts.null_error", record.counts.null_error, null, 1e-10 * (1.0 + null))
    return checks.end_part("the half deviance of the mean rate")


def check_names(checks: Checks, classes: Classes | None, dataset: Dataset, rows: IntArray) -> bool:
    """Check the names of both classes, and the log loss of their frequencies in some rows."""
    if not checks.require(classes is not None, "classes", "is null though the loss is logistic") or classes is None:
        return False
    checks.require_equal("classes.certified", classes.certified, "log_loss")
    for name, class_name in zip(("negative", "positive"), dataset.classes or (None, None), strict=True):
        checks.require_equal(f"classes.{name}", getattr(classes, name), class_name)
    null = glm_objective.null_loss(dataset, Loss.LOGISTIC, rows)
    checks.close("classes.null_error", classes.null_error, null, 1e-12)
    return checks.end_part("the classes, and the log loss of their frequencies")


def _errors(
    checks: Checks, record: Record, design: GlmDesign, plan: FoldPlan, pair: optimality.ReportedPair,
    supports: list[Support],
) -> None:  # fmt: skip
    """Check the held-out losses of the folds of a pair, their sum, and the quality of the predictions."""
    total, said = Scored.of(design.dataset, plan).total, pair.folds.error
    found = _refit_folds(checks, design, plan, pair.known.gamma, supports)
    for fold in np.flatnonzero(~(np.abs(said - found.losses) <= found.room)).tolist():
        checks.close(f"{pair.name}[{fold}].error", float(said[fold]), float(found.losses[fold]), 0.0)
    checks.mark_recomputed_fields(f"{pair.name}[].fold", f"{pair.name}[].error")
    checks.end_part(f"held-out {LOSS_OF_ROWS[record.loss]} of every fold{pair.words}")
    mean, own = float(found.losses.sum()) / total, find_row(pair.known, record.table)
    if own is not None and own.folds_decided < own.folds:  # an estimate is moved into the interval of its pair
        mean = min(max(mean, own.lower), own.upper)
    checks.close(
        f"{pair.path}cv_error", pair.known.cv_error, mean, 2.0 * CROSSING_RTOL * mean + found.open / total + TINY
    )
    checks.end_part(f"{pair.path}cv_error")
    if pair.path or record.classes is None or record.classes.accuracy is None:
        return
    scored, data = plan.order[: plan.scored], design.dataset
    weights = None if data.row_weights is None else data.row_weights[scored]
    check_quality(checks, record.classes, data.y[scored], probabilities(found.predictors), weights, "classes.")
    checks.end_part("accuracy, AUC and Brier score of the held-out predictions")


class _Refitted(NamedTuple):
    """Held-out losses (k,) of folds, their error bounds, an additional bound for their sum, and all predictors."""

    losses: FloatArray
    room: FloatArray
    open: float
    predictors: FloatArray


def _tell_after(checks: Checks, total: int, begun: int, done: int) -> None:
    checks.tell(begun + done, total)


def _refit_folds(
    checks: Checks, design: GlmDesign, plan: FoldPlan, gamma: float, supports: list[Support]
) -> _Refitted:  # fmt: skip
    """Fit the support of every fold to its training rows, or use Newton steps for many single-row folds.

    Rows whose loss these steps do not determine are fitted like others.
    """
    losses, room, wide = np.full(plan.k, np.nan), np.zeros(plan.k), np.zeros(plan.k)
    predictors = np.full(plan.scored, np.nan)
    alone = plan.k >= MANY_ALONE and np.all(plan.sizes == 1) and np.all(plan.left_sizes == 1) and not design.own
    for support in sorted(set(supports)) if alone else ():
        folds = np.array([fold for fold, other in enumerate(supports) if other == support])
        rows, begun = plan.order[folds], plan.k - int(np.isnan(losses).sum())
        found, off = design.hold_out_singly(support, gamma, rows, partial(_tell_after, checks, plan.k, begun))
        narrow = found.upper - found.lower <= NARROW * found.upper
        losses[folds], predictors[folds] = np.where(narrow, found.losses, np.nan), found.predictors
        wide[folds] = np.maximum(found.upper - found.losses, found.losses - found.lower)
        room[folds] = wide[folds] + off
    for fold in np.flatnonzero(np.isnan(losses)).tolist():
        checks.tell(fold, plan.k)
        model, scored = design.fit(supports[fold], gamma, plan.train_rows(fold)), plan.scored_rows(fold)
        losses[fold], room[fold] = design.held_out(model, scored)
        predictors[plan.starts[fold] : plan.starts[fold + 1]] = model.predictors(design.dataset.X[scored])
        wide[fold] = 0.0
    return _Refitted(losses, room, float(wide.sum()), predictors)


def check_quality(
    checks: Checks, said: Classes | NestedClasses, y: FloatArray, chances: FloatArray, weights: FloatArray | None,
    path: str,
) -> None:  # fmt: skip
    """Check accuracy, AUC and Brier score of some rows against their probabilities.

    Parameters
    ----------
    said : Classes or NestedClasses
        Part of the record with the measures.
    y, chances : (m,) arrays
        Classes 0 and 1, and probabilities of class 1.
    weights : (m,) array or None
        Row weights; None if each row counts once.
    path : str
        Prefix of the fields in messages.
    """
    quality, w = class_quality(y, chances, weights), np.ones(len(y)) if weights is None else weights
    open_to_rounding = {"accuracy": _uncertain_class_share(chances, w), "auc": _uncertain_order_share(y, chances, w)}
    for name in ("accuracy", "auc", "brier"):
        number = getattr(said, name)
        if number is not None:
            room = FOLLOWS_RTOL + open_to_rounding.get(name, 0.0)
            checks.close(f"{path}{name}", number, getattr(quality, name), room)


def _uncertain_class_share(chance: FloatArray, w: FloatArray) -> float:
    """Return the share of rows whose predicted class depends on rounding."""
    return float(np.average(np.abs(chance - 0.5) <= FOLLOWS_RTOL, weights=w))


def _uncertain_order_share(y: FloatArray, chance: FloatArray, w: FloatArray) -> float:
    """Return the share of pairs of a row of each class whose order of probabilities depends on rounding."""
    one, order = y > 0.0, np.argsort(chance, kind="stable")
    zeros = order[~one[order]]
    before = np.concatenate([[0.0], np.cumsum(w[zeros])])
    first = before[np.searchsorted(chance[zeros], chance[one] - FOLLOWS_RTOL, "left")]
    last = before[np.searchsorted(chance[zeros], chance[one] + FOLLOWS_RTOL, "right")]
    return float(w[one] @ (last - first)) / max(float(w[one].sum() * before[-1]), TINY)


@dataclass(frozen=True)
class Claim:
    """A model of a record and the claims about its objective; `path` is the prefix of its fields."""

    model: Record | PathRow | FitRecord
    proof: Refit | PathRow
    path: str
    proof_path: str


def check_coefficients(
    checks: Checks, said: Record | PathRow | FitRecord | CommonRecord, design: GlmDesign,
    pair: tuple[float, int] | None = None, path: str = "",
) -> GlmModel | None:  # fmt: skip
    """Check the coefficients of a full-data model against a refit of its support, which is returned.

    Parameters
    ----------
    said : record or its row
        Record or row with the model.
    design : GlmDesign
        Design that computes the fits.
    pair : (float, int), optional
        Gamma and tau; by default those of `said`.
    path : str
        Prefix of the fields in messages.
    """
    gamma, tau = (said.gamma, said.tau) if pair is None else pair
    support = design.positions(said.support)
    names = [] if support is None else [design.dataset.names[j] for j in support]
    right = support is not None and len(said.support) <= tau and set(said.coefficients) == set(names)
    words = f"is not a set of up to {tau} features of the data with a coefficient each"
    right = right and design.forced <= set(support or ())
    if not checks.require(right, f"{path}support", words) or support is None:
        return None
    model = design.fit(support, gamma)
    numbers = np.array([said.coefficients[name] for name in names])
    largest = float(np.abs(model.beta * model.unit).max(initial=0.0))
    room = (FOLLOWS_RTOL * largest + design.coefficient_rounding(model)) / model.unit
    for name, mine, theirs, off in zip(names, numbers, model.beta, room, strict=True):
        checks.close(f"{path}coefficients.{name}", float(mine), float(theirs), float(off))
    level = 1.0 + abs(model.intercept) + float(np.abs(model.center) @ np.abs(model.beta)) + largest
    checks.close(f"{path}intercept", said.intercept, model.intercept, FOLLOWS_RTOL * level)
    checks.mark_recomputed_fields(f"{path}coefficients")
    return model


def _check_model(checks: Checks, claim: Claim, design: GlmDesign, gap: float) -> Support | None:
    """Check a full-data model against a refit of its support, which is returned."""
    refit, path = claim.proof, claim.proof_path
    model = check_coefficients(checks, claim.model, design, (refit.gamma, refit.tau), claim.path)
    if model is None:
        return None
    rounding = design.rounding(model)
    checks.close(f"{path}objective", refit.objective, model.objective, rounding)
    checks.require(refit.lower <= model.objective + rounding, f"{path}lower", f"{refit.lower!r} exceeds the objective")
    checks.require(refit.upper >= model.objective - rounding, f"{path}upper", f"{refit.upper!r} is below the objective")
    closed = refit.upper - refit.lower <= max(gap, 2.0 * LOSS_SLACK) * refit.upper + 2.0 * rounding
    checks.require(closed or not refit.proved, f"{path}proved", "upper - lower exceeds the requested gap")
    return tuple(sorted(model.support))


def _check_least(
    checks: Checks, proof: Refit | PathRow, path: str, design: GlmDesign, start: Support, gap: float, most: int
) -> bool:
    """Check the bounds of a full-data best subset by branching; return True if this was possible."""
    best = design.best(proof.tau, proof.gamma, None, start, most)
    if best is None:
        return False
    optimum = design.fit(best[0], proof.gamma)
    least, rounding = optimum.objective, design.rounding(optimum)
    checks.require_at_most(f"{path}lower", proof.lower, least, f"the least objective, {least!r}", rounding)
    if proof.proved:
        top = least + max(gap, 2.0 * LOSS_SLACK) * proof.upper + 2.0 * rounding
        checks.require_at_most(f"{path}objective", proof.objective, top, f"the least one, {least!r}, by the gap")
    return True


def check_path_of_classes(checks: Checks, record: PathRecord, dataset: Dataset) -> bool:
    """Check the full-data best subsets of a record with logistic or Poisson loss.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : PathRecord
        Record of a path.
    dataset : Dataset
        Data in the form of the loss.

    Returns
    -------
    bool
        Whether nothing kept the checks from being complete.
    """
    request, design = record.request, GlmDesign(record, dataset)
    check_requested_grid(checks, request, record.data.p)
    check_grid(checks, request, record.path, "path")
    checks.leaves("within that it is read", "request.gap")
    every = all(row.proved for row in record.path)
    checks.require(every == (record.status == "proved"), "status", f"is {record.status}, the rows say otherwise")
    checks.end_part("the requested grid, status")
    check_target(checks, record, dataset, np.arange(dataset.n))
    supports = []
    for i, row in enumerate(record.path):
        checks.tell(i, len(record.path))
        supports.append(_check_model(checks, Claim(row, row, f"path[{i}].", f"path[{i}]."), design, request.gap))
    checks.end_part(f"coefficients, intercept and objective of {len(record.path)} fits on all rows")
    begun = design.fits
    for i, (row, support) in enumerate(zip(record.path, supports, strict=True)):
        fits_left = MOST_FITS - (design.fits - begun)
        if support is not None and not _check_least(
            checks, row, f"path[{i}].", design, support, request.gap, fits_left
        ):
            checks.caveat = f"optimality not verified ({fit_limit_message(record)})"
            return True
    checks.end_part("lower and upper of every fit, by branching over its supports")
    return True


def check_fit_of_classes(checks: Checks, record: FitRecord, dataset: Dataset) -> tuple[float, float] | None:
    """Check the model of one fit with logistic or Poisson loss, and its bounds under side constraints.

    Parameters
    ----------
    checks : Checks
        Collector of the outcomes.
    record : FitRecord
        Record of a fit.
    dataset : Dataset
        Data in the form of the loss.

    Returns
    -------
    (float, float) or None
        Rounding error of the objective, and the objective without columns, which is the scale of the tolerances of a
        solver; None if the record is incomplete.
    """
    if not check_target(checks, record, dataset, np.arange(dataset.n)):
        return None
    design, side = GlmDesign(record, dataset), record.side
    # the allowance of a solver is separate from its gap; the status depends on both
    proof = Refit(record.gamma, record.tau, record.objective, record.lower, record.upper, proved=False)
    support = _check_model(checks, Claim(record, proof, "", ""), design, record.requested_gap)
    if support is None:
        return None
    checks.end_part("coefficients, intercept and objective of the fit on all rows")
    shape = None if side is None else side.restrictions
    if side is None or side.together or side.box or (shape is not None and shape.side_constraints):
        checks.caveat = "optimality not verified (side constraints beyond forced features)"
    else:
        proved = record.status == "proved"
        room = record.requested_gap + record.allowance / max(record.upper, TINY)
        if _check_least(checks, replace(proof, proved=proved), "", design, support, room, MOST_FITS):
            checks.end_part("lower and objective, by branching over all supports")
        else:
            checks.caveat = f"optimality not verified ({fit_limit_message(record)})"
    model = design.fit(support, record.gamma)
    return design.rounding(model), design.fit((), record.gamma).objective


def _optimality(
    checks: Checks, record: Record, design: GlmDesign, plan: FoldPlan,
    known: list[tuple[optimality.ReportedPair, list[Support]]],
) -> None:  # fmt: skip
    """Prove supports again: those of the reported pairs, and of other pairs if this is cheap."""
    place = {name: j for j, name in enumerate(design.dataset.names)}
    others = (place[name] for name in record.support if name in place)
    start = tuple(sorted({*design.forced, *others}, key=lambda j: (j not in design.forced, j)))
    for pair, supports in known:
        if not _check_pair(checks, record, design, plan, pair, supports):
            checks.caveat = f"optimality not verified ({fit_limit_message(record)})"
            return
    if not _check_grid(checks, record, design, plan, start):
        checks.caveat = f"optimality over the grid not verified ({fit_limit_message(record)})"
    start = tuple(sorted(start))
    if not _check_least(checks, record.refit, "refit.", design, start, record.request.gap, MOST_FITS):
        checks.caveat = checks.caveat or "optimality of the fit on all rows not verified"
        return
    checks.end_part("lower and upper of the fit on all rows, by branching")


def _truth(design: GlmDesign, plan: FoldPlan, fold: int, best: list[Support], gamma: float) -> Truth:
    scored = [
        design.held_out(design.fit(support, gamma, plan.train_rows(fold)), plan.scored_rows(fold)) for support in best
    ]
    ends = [(loss - off, loss + off) if np.isfinite(loss + off) else (0.0, np.inf) for loss, off in scored]
    return Truth(min(low for low, _ in ends), max(high for _, high in ends))


def _check_pair(
    checks: Checks, record: Record, design: GlmDesign, plan: FoldPlan, pair: optimality.ReportedPair,
    supports: list[Support],
) -> bool:  # fmt: skip
    """Check the solved folds of a pair and its interval; return True if this was possible."""
    begun, low, high, is_counts = design.fits, 0.0, 0.0, design.loss is Loss.POISSON
    row, total = find_row(pair.known, record.table), Scored.of(design.dataset, plan).total
    for fold, support in enumerate(supports):
        checks.tell(fold, plan.k)
        fits_left = design.remaining_fits(begun, fold, plan.k)
        best = design.best(pair.known.tau, pair.known.gamma, plan.train_rows(fold), support, fits_left)
        if best is None:
            return False
        if pair.folds.decided[fold]:
            train = plan.train_rows(fold)
            objectives = [design.fit(candidate, pair.known.gamma, train).objective for candidate in (support, best[0])]
            named = ", ".join(design.dataset.names[j] for j in best[0])
            words = f"is not the best one: {named} fits the training rows better"
            noise = EXACT_DEVIANCE * design.dataset.weight_of(train) * float(np.abs(design.dataset.y[train]).max())
            tied = objectives[0] <= objectives[1] * (1.0 + 2.0 * NEWTON_RTOL) + (noise if is_counts else TINY)
            checks.require(tied, f"{pair.name}[{fold}].support", words)
        truth = _truth(design, plan, fold, best, pair.known.gamma)
        low, high = low + truth.low, high + truth.high
    if row is not None:
        _check_interval(checks, f"table[{record.table.index(row)}].", row.lower, row.upper, low / total, high / total)
    checks.end_part(f"supports of the folds{pair.words}, by branching")
    return True


def _check_interval(checks: Checks, place: str, lower: float, upper: float, low: float, high: float) -> None:
    """Check an interval against bounds on the truth."""
    checks.require(
        lower <= high * (1.0 + CROSSING_RTOL) + TINY, f"{place}lower", f"{lower!r} exceeds the true {high!r}"
    )
    checks.require(upper >= low * (1.0 - CROSSING_RTOL) - TINY, f"{place}upper", f"{upper!r} is below the true {low!r}")


def _check_spread(checks: Checks, place: str, row: TableRow, truths: list[Truth], scored: Scored) -> None:
    """Check the standard error of a pair whose folds are all solved, if ties do not affect its losses.

    Changing the losses of folds by d in total moves it by at most `d / sqrt(n min n_j (k - 1))`, n_j the scored rows of
    a fold, n those of all folds (:func:`~sparsecv_mio.problem.objective.standard_error`).
    """
    ends = np.array([[truth.low, truth.high] for truth in truths])
    said, tied = row.standard_error, (ends[:, 1] - ends[:, 0] > SPREAD_RTOL * ends[:, 1] + TINY).any()
    if said is None or tied or row.folds_decided < row.folds or not scored.has_standard_error:
        return
    sizes = scored.by_fold
    spread = standard_error(ends.mean(axis=1), sizes, scored.times)
    open_sum = float((ends[:, 1] - ends[:, 0]).sum()) + (row.upper - row.lower) * scored.total
    moved = open_sum / np.sqrt(float(sizes.sum()) * float(sizes.min()) * (len(sizes) / scored.times - 1.0))
    room = min(moved + CROSSING_RTOL * row.cv_error, SPREAD_RTOL * row.cv_error) + TINY
    checks.require(abs(said - spread) <= room, place, f"is {said!r}, the folds give {spread!r}")


def _check_grid(checks: Checks, record: Record, design: GlmDesign, plan: FoldPlan, start: Support) -> bool:
    """Check the interval of every pair of the table by its optimal supports; return True if this was possible."""
    begun, scored = design.fits, Scored.of(design.dataset, plan)
    total, least = scored.total, [np.inf, np.inf]
    of_rows = [list[Truth]() for _ in record.table]
    for fold in range(plan.k):
        checks.tell(fold, plan.k)
        train = plan.train_rows(fold)
        for row, truths in zip(record.table, of_rows, strict=True):
            fits_left = design.remaining_fits(begun, fold, plan.k)
            best = design.best(row.tau, row.gamma, train, start[: design.n_columns(row.tau)], fits_left)
            if best is None:
                return False
            truths.append(_truth(design, plan, fold, best, row.gamma))
    for i, (row, truths) in enumerate(zip(record.table, of_rows, strict=True)):
        low, high = sum(truth.low for truth in truths), sum(truth.high for truth in truths)
        _check_spread(checks, f"table[{i}].standard_error", row, truths, scored)
        _check_interval(checks, f"table[{i}].", row.lower, row.upper, low / total, high / total)
        least = [min(least[0], low / total), min(least[1], high / total)]
    _check_interval(checks, "", record.certificate.lower, record.certificate.upper, *least)
    checks.end_part("lower and upper of every pair, by branching over its supports")
    return True
