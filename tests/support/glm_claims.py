"""What answers of two classes and of counts claim, compared with a referee that has fitted every support."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from glm_referee import TIED, Fits, Referee, Support

from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, NearRecord, PathRecord
from sparsecv_mio.certificate.records import Average, PathRow, Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan

ROUNDING = 1e-7  # of a value, as `verify` allows
LEAST = 1e-12
STEPPED = 2e-8  # of a predictor of a row that a Newton step leaves out, as the errors of folds may have them
Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Truth:
    """A referee, the data as the package has them, and their folds."""

    referee: Referee
    data: Dataset
    plan: FoldPlan
    rows: np.ndarray  # of the referee, which the data are

    @classmethod
    def from_data(cls, data: Dataset, plan: FoldPlan, loss: str, how: dict[str, Any], free: Support = ()) -> Truth:
        """Return the truth about data whose target is encoded; columns that are `free` have no penalty.

        Scale, intercept and forced columns are those of the options of a search.
        """
        one = np.ones(data.n)
        weights = one if data.row_weights is None else data.row_weights
        exposure = one if data.row_exposure is None else data.row_exposure
        y = 2.0 * data.y - 1.0 if loss == "logistic" else data.y
        into, out = (tuple(map(data.names.index, how.get(name, ()))) for name in ("force_in", "force_out"))
        referee = Referee(
            loss, data.X, y, weights, exposure, how["scale"], how["intercept"] != "none", (*free, *into), out, free
        )  # fmt: skip
        return cls(referee, data, plan, np.arange(data.n))

    @cached_property
    def scored(self) -> list[np.ndarray]:
        """Rows that each fold scores."""
        return [self.rows[self.plan.scored_rows(fold)] for fold in range(self.plan.k)]

    def support(self, names: Any) -> Support:
        return tuple(sorted(self.data.names.index(name) for name in names))

    def train(self, fold: int) -> np.ndarray:
        return self.rows if fold < 0 else self.rows[self.plan.train_rows(fold)]

    def fits(self, gamma: float, tau: int, fold: int = -1) -> Fits:
        return self.referee.fits(self.train(fold), gamma, tau)

    def one(self, support: Support, gamma: float, fold: int = -1) -> tuple[Fits, int]:
        """The fit of a support, and where it is among those of its size."""
        fits = self.fits(gamma, self.count(support), fold)
        return fits, fits.of(support)

    def count(self, support: Support) -> int:
        """The number of features of a support."""
        return len(support)

    def lost(self, fits: Fits, which: Any, fold: int) -> np.ndarray:
        """What the scored rows of a fold lose by some fits."""
        rows = self.scored[fold]
        return np.asarray(fits.losses[which][..., rows] @ self.referee.w[rows])

    @cached_property
    def sizes(self) -> np.ndarray:
        """Weight of what each fold scores."""
        return np.array([self.referee.w[rows].sum() for rows in self.scored])

    def fold_ends(self, gamma: float, tau: int) -> np.ndarray:
        """(k, 2) least and greatest held-out loss over all supports that are optimal in a fold."""
        ends = np.zeros((self.plan.k, 2))
        for fold in range(self.plan.k):
            fits = self.fits(gamma, tau, fold)
            lost = self.lost(fits, fits.best(), fold)
            ends[fold] = lost.min(), lost.max()
        return ends

    def h(self, gamma: float, tau: int) -> Ends:
        low, high = self.fold_ends(gamma, tau).sum(axis=0) / self.sizes.sum()
        return float(low), float(high)

    def common(self, support: Support, gamma: float) -> float:
        """CV error of a support that every fold has."""
        lost = [self.lost(*self.one(support, gamma, fold), fold) for fold in range(self.plan.k)]
        return float(sum(lost) / self.sizes.sum())

    def least(self, gamma: float, tau: int) -> float:
        """Least objective of all rows."""
        return float(self.fits(gamma, tau).value.min())

    def null(self) -> float:
        """Loss per row of the class frequencies, or of the mean rate, of the scored rows alone."""
        r, rows = self.referee, np.concatenate(self.scored)
        y, w = r.y[rows], r.w[rows]
        mean = w @ y / (w @ r.e[rows])
        if r.loss == "logistic":
            return self._null_of_classes(rows)
        t = np.full((1, len(r.y)), np.log(mean) if mean > 0 else -np.inf, dtype=np.longdouble)
        return float(r.row_loss(t)[0][0][rows] @ w / w.sum()) if mean > 0 else 0.0

    def _null_of_classes(self, rows: np.ndarray) -> float:
        """Log loss of the best intercept, by bisection; 0 if all rows are of one class."""
        r, w, low, high = self.referee, self.referee.w[rows], -100.0, 100.0
        if np.all(r.y[rows] == r.y[rows][0]):
            return 0.0
        for _ in range(200):
            losses, slopes, _ = r.row_loss(np.full((1, len(r.y)), 0.5 * (low + high), dtype=np.longdouble))
            rises = slopes[0][rows] @ w > 0.0
            low, high = (low, 0.5 * (low + high)) if rises else (0.5 * (low + high), high)
        return float(losses[0][rows] @ w / w.sum())


def near(what: str, said: float, ends: Ends, room: float = ROUNDING) -> Iterator[str]:
    """A number that is claimed, and where it lies in truth."""
    if not ends[0] * (1.0 - room) - LEAST <= said <= ends[1] * (1.0 + room) + LEAST:
        yield f"{what}: {said!r} is said, it is in {ends}"


def inside(what: str, lower: float, upper: float, ends: Ends) -> Iterator[str]:
    """An interval that is claimed, and what it has to hold."""
    if not (lower <= ends[1] * (1.0 + ROUNDING) + LEAST and upper >= ends[0] * (1.0 - ROUNDING) - LEAST):
        yield f"{what}: [{lower!r}, {upper!r}] is said, it is in {ends}"


def standard_error(truth: Truth, means: np.ndarray) -> float:
    """That of a CV error over its folds, by glmnet's definition, as if each row had been scored once."""
    weights = truth.sizes / truth.sizes.sum()
    scored = np.unique(np.concatenate(truth.scored))
    times = truth.sizes.sum() / truth.referee.w[scored].sum()
    rest = means / truth.sizes - weights @ (means / truth.sizes)
    return math.sqrt(float(weights @ rest**2) / (truth.plan.k / times - 1.0))


def tied(ends: np.ndarray) -> bool:
    return bool((ends[:, 1] - ends[:, 0] > 1e-9 * ends[:, 1] + LEAST).any())


def of_model(truth: Truth, what: str, row: Any, gamma: float, proved: bool) -> Iterator[str]:
    """A best subset of all rows: its interval, its objective, its coefficients by what they predict."""
    S = truth.support(row.support)
    least = truth.least(gamma, row.tau)
    yield from inside(f"{what} objective", row.lower, row.upper, (least, least))
    if truth.count(S) > row.tau:
        yield f"{what}: {row.support} has more than {row.tau} features"
        return
    fits, at = truth.one(S, gamma)
    value = float(fits.value[at])
    yield from near(f"{what} objective", row.objective, (value, value))
    if proved and value > least * (1.0 + 2e-7) + LEAST:
        yield f"{what}: proved with {value!r}, the least is {least!r}"
    X, b = truth.data.X[:, list(S)], np.array([row.coefficients.get(truth.data.names[j], 0.0) for j in S])
    size = float((np.abs(X) @ np.abs(b)).max(initial=0.0))
    yield from of_predictors(truth, what, row.intercept + X @ b, S, gamma, size)


def of_predictors(truth: Truth, what: str, told: np.ndarray, S: Support, gamma: float, size: float) -> Iterator[str]:
    """Linear predictors of all rows by a model of these; its products, of a size, round."""
    fits, at = truth.one(S, gamma)
    right = fits.predictors[at][truth.rows].astype(float)
    off = float(np.abs(told - right).max())
    if not off <= 1e-6 * (1.0 + np.abs(right).max()) + 1e-14 * size:
        yield f"{what}: predictors are off by {off!r} of {np.abs(right).max()!r}"


def of_search(truth: Truth, record: Record) -> Iterator[str]:
    """Everything that a record of `solve` says of its grid, its pair and its model."""
    grid = {(row.gamma, row.tau): truth.fold_ends(row.gamma, row.tau) for row in record.table}
    total = truth.sizes.sum()
    h = {pair: (float(ends[:, 0].sum() / total), float(ends[:, 1].sum() / total)) for pair, ends in grid.items()}
    for row in record.table:
        pair = row.gamma, row.tau
        yield from inside(f"h of {pair}", row.lower, row.upper, h[pair])
        if row.folds_decided == row.folds:
            yield from near(f"CV error of {pair}", row.cv_error, h[pair], ROUNDING)
            if row.standard_error is not None and not tied(grid[pair]):
                spread = standard_error(truth, grid[pair].mean(axis=1))
                if abs(row.standard_error - spread) > 1e-6 * (spread + row.cv_error):
                    yield f"standard error of {pair}: {row.standard_error!r} is said, it is {spread!r}"
    least = (min(low for low, _ in h.values()), min(high for _, high in h.values()))
    said, pair = record.certificate, (record.gamma, record.tau)
    yield from inside("least CV error", said.lower, said.upper, least)
    if record.status == "proved":
        allowed = record.request.gap * said.upper + said.tie_width + said.allowance
        if said.upper - said.lower > allowed * (1.0 + 1e-9):
            yield f"proved, though [{said.lower!r}, {said.upper!r}] is open"
        low = h[said.gamma, said.tau][0]
        if low > least[1] * (1.0 + 2.0 * record.request.gap + ROUNDING) + said.tie_width + said.allowance + LEAST:
            yield f"proved: {said.gamma, said.tau} has {low!r}, the least is {least}"
    yield from _of_folds(truth, record)
    yield from _of_region(record, h)
    if record.one_se is not None and not record.one_se.estimate and record.status == "proved":
        yield from _of_one_se(truth, record, grid, h)
    yield from of_model(truth, "model", _refit(record), record.gamma, record.refit.proved)
    if record.stability is not None:
        yield from _of_stability(truth, record, h)
    null = (record.classes or record.counts).null_error  # type: ignore[union-attr]
    yield from near("null error", null, (truth.null(), truth.null()))
    every = record.status == "proved" and record.request.gap == 0.0 and not any(map(tied, grid.values()))
    if record.average is not None and every and not any(pair.estimate for pair in record.average.pairs):
        yield from of_average(truth, record, record.average)


def _refit(record: Record) -> PathRow:
    said = record.refit
    return PathRow(
        said.gamma, said.tau, record.support, record.coefficients, record.intercept, said.objective, said.lower,
        said.upper, said.proved,
    )  # fmt: skip


def _of_folds(truth: Truth, record: Record) -> Iterator[str]:
    """The fits of folds that are named, what they lose, and how good their probabilities are."""
    w, right, brier, sums, told = truth.referee.w, 0.0, 0.0, np.zeros(2), list[np.ndarray]()
    within = 1.0 + (math.inf if record.training_gap is None else record.training_gap)
    for one in record.chosen_folds:
        S, gamma = truth.support(one.support), record.gamma
        if truth.count(S) > record.tau:
            yield f"fold {one.fold}: {one.support} has more than {record.tau} features"
            continue
        (fits, at), rows = truth.one(S, gamma, one.fold), truth.scored[one.fold]
        best = float(truth.fits(gamma, record.tau, one.fold).value.min())
        moved = [truth.referee.row_loss(fits.predictors[at : at + 1] + by)[0][0] for by in (-STEPPED, 0.0, STEPPED)]
        lost = [float(some(moved, axis=0)[rows] @ w[rows]) for some in (np.min, np.max)]
        yield from near(f"loss of fold {one.fold}", one.error, (lost[0], lost[1]))
        sums += lost
        if one.decided and float(fits.value[at]) > best * (1.0 + 1e-9) + LEAST:
            yield f"fold {one.fold}: {one.support} is said to be best with {float(fits.value[at])!r}, not {best!r}"
        if float(fits.value[at]) > within * best * (1.0 + 1e-9) + LEAST:
            yield f"fold {one.fold}: {one.support} has {float(fits.value[at])!r}, beyond the training gap of {best!r}"
        t, y = (fits.predictors[at] + np.log(truth.referee.e))[rows].astype(float), truth.referee.y[rows]
        told.append(t)
        if record.classes is not None:
            right += float(w[rows] @ ((t > 0.0) == (y > 0.0)))
            brier += float(w[rows] @ (1.0 / (1.0 + np.exp(np.minimum(-t, 700.0))) - (y > 0.0)) ** 2)
            if np.abs(t).min() < 1e-6:  # the likelier class is a matter of rounding
                right = math.nan
    total = float(truth.sizes.sum())
    if not record.estimate:
        yield from near("CV error", record.cv_error, (sums[0] / total, sums[1] / total))
    classes = record.classes
    if classes is not None and classes.brier is not None and len(told) == truth.plan.k:
        yield from near("Brier score", classes.brier, (brier / total, brier / total), 1e-6)
        rows = np.concatenate(truth.scored)
        if classes.auc is not None:
            yield from near("AUC", classes.auc, _auc(np.concatenate(told), truth.referee.y[rows], w[rows]), 1e-6)
        if classes.accuracy is not None and not math.isnan(right):
            yield from near("accuracy", classes.accuracy, (right / total, right / total), 1e-6)


def _auc(t: np.ndarray, y: np.ndarray, w: np.ndarray) -> Ends:
    """The area under the ROC curve, by all pairs of rows; probabilities that differ by next to nothing may be tied."""
    t = 1.0 / (1.0 + np.exp(np.minimum(-t, 700.0)))
    ones, pairs = y > 0.0, np.outer(w[y > 0.0], w[y <= 0.0])
    ahead = t[ones][:, None] - t[~ones][None, :]
    low, high = (ahead > 1e-6).astype(float), (ahead >= -1e-6).astype(float)
    return float((pairs * low).sum() / pairs.sum()), float((pairs * high).sum() / pairs.sum())


def _of_region(record: Record, h: dict[Any, Ends]) -> Iterator[str]:
    """The part of the grid in which the best pair is proved."""
    region = record.region
    if region is None:
        return
    own, tau, gamma = (region.gamma, region.tau), region.up_to_tau, region.from_gamma
    part = [ends for (g, t), ends in h.items()
            if (g, t) == own or (tau is not None and t <= tau) or (gamma is not None and g >= gamma)]  # fmt: skip
    least = min(low for low, _ in part), min(high for _, high in part)
    yield from inside("region, least", region.lower, math.inf, least)
    yield from inside("region, pair", 0.0, region.upper, h[own])
    room = region.tie_width + region.allowance
    if region.upper - region.lower > (record.request.gap * region.upper + room) * (1.0 + 1e-9):
        yield f"region: [{region.lower!r}, {region.upper!r}] is open"
    if h[own][0] > least[1] * (1.0 + 2.0 * record.request.gap + ROUNDING) + room + LEAST:
        yield f"region: {own} has {h[own]}, the least is {least}"


def _of_one_se(truth: Truth, record: Record, grid: dict[Any, np.ndarray], h: dict[Any, Ends]) -> Iterator[str]:
    best = (record.certificate.gamma, record.certificate.tau)
    if record.one_se is None or tied(grid[best]):
        return
    spread = standard_error(truth, grid[best].mean(axis=1))
    if abs(record.one_se.standard_error - spread) > 1e-6 * (spread + record.certificate.cv_error):
        yield f"one standard error: {record.one_se.standard_error!r} is said, it is {spread!r}"
    limit = h[best][1] + spread
    if h[record.gamma, record.tau][0] > limit * (1.0 + 1e-6):
        yield f"one SE: {record.gamma, record.tau} has {h[record.gamma, record.tau]}, beyond {limit!r}"
    for row in record.table:
        simpler = row.tau < record.tau or (row.tau == record.tau and row.gamma > record.gamma)
        if simpler and row.upper <= limit * (1.0 - 1e-6) and row.folds_decided == row.folds:
            yield f"one SE: {row.gamma, row.tau} is simpler, with {h[row.gamma, row.tau]} below {limit!r}"


def _of_stability(truth: Truth, record: Record, h: dict[Any, Ends]) -> Iterator[str]:
    """The instability of the reported pair, and the choice by its weight."""
    w, stable = truth.referee.w, record.stability
    assert stable is not None

    def instability(gamma: float, tau: int) -> Ends:
        whole = truth.fits(gamma, tau)
        ends = []
        for full in whole.losses[whole.best()]:
            changes = []
            for fold in range(truth.plan.k):
                fits = truth.fits(gamma, tau, fold)
                changes.append(np.abs(fits.losses[fits.best()] - full) @ w)
            ends.append((max(some.min() for some in changes), max(some.max() for some in changes)))
        return float(min(low for low, _ in ends) / w.sum()), float(max(high for _, high in ends) / w.sum())

    ends = instability(record.gamma, record.tau)
    yield from inside("instability", stable.instability_lower, stable.instability_upper * (1 + 1e-6) + 1e-9, ends)
    if not stable.estimate:
        yield from near("instability", stable.instability, ends, 1e-6)
    chosen = stable.chosen
    if chosen is None:
        return
    criteria = {}
    for row, told in zip(record.table, chosen.intervals, strict=True):
        pair = (row.gamma, row.tau)
        some = instability(*pair)
        yield from inside(f"instability of {pair}", told.lower, told.upper * (1 + 1e-6) + 1e-9, some)
        criteria[pair] = h[pair][0] + chosen.weight * some[0], h[pair][1] + chosen.weight * some[1]
    best = min(high for _, high in criteria.values())
    own = criteria[record.gamma, record.tau]
    yield from inside("criterion", chosen.lower, math.inf, (best, best))
    yield from inside("criterion of the pair", 0.0, chosen.upper, own)
    if chosen.proved and own[0] > best * (1 + 2 * record.request.gap + 1e-6) + chosen.allowance + 1e-9:
        yield f"criterion: the chosen pair has {own}, the best {best!r}"


def of_near(truth: Truth, record: NearRecord, within: float) -> Iterator[str]:
    """Every support within the share is listed, no other, each with its value; and what all of them have."""
    for size in record.sizes:
        supports = truth.referee.supports(size.tau)
        if record.by == "objective":
            value = dict(zip(supports, truth.fits(record.gamma, size.tau).value.astype(float), strict=True))
        else:
            value = {S: truth.common(S, record.gamma) for S in supports}
        best, what = min(value.values()), f"near, size {size.tau}"
        room = ROUNDING * best * (2.0 + within) + LEAST
        listed = {truth.support(model.support): model.value for model in record.models if model.tau == size.tau}
        yield from inside(what, size.lower, size.best, (best, best))
        for S, said in listed.items():
            if S not in value:
                yield f"{what}: {S} is listed, which is no support"
            else:
                yield from near(f"{what}, {S}", said, (value[S], value[S]))
        missing = [S for S, known in value.items() if known < size.complete_to - room and S not in listed]
        if missing:
            yield f"{what}: {missing[0]} with {value[missing[0]]!r} is missing, complete to {size.complete_to!r}"
        if record.status == "proved":
            yield from near(f"{what}, best", size.best, (best, best))
            yield from near(f"{what}, threshold", size.threshold, ((1 + within) * best,) * 2)
            if listed and max(listed.values()) > size.threshold + room:
                yield f"{what}: a model with {max(listed.values())!r} is listed beyond {size.threshold!r}"
        sure = [set(S) for S, known in value.items() if known < size.complete_to - room]
        for feature in truth.support(size.always):
            if not all(feature in S for S in sure):
                yield f"{what}: feature {feature} is not in every support"
        for feature in truth.support(size.never):
            if any(feature in S for S in sure):
                yield f"{what}: feature {feature} is in some support"
        edge = [S for S, known in value.items() if abs(known - size.complete_to) <= room]
        if sure and not edge:
            for name, told, some in (("always", size.always, set.intersection(*sure)),
                                     ("never", size.never, set(truth.referee.varying).difference(*sure))):  # fmt: skip
                if not some - set(truth.referee.force_out) <= set(truth.support(told)):
                    yield f"{what}: {name} has {told}, all of {sorted(some)} are"


def of_common(truth: Truth, record: CommonRecord, gap: float) -> Iterator[str]:
    """The least CV error of one subset for all folds."""
    pairs = [(row.gamma, row.tau) for row in record.table]  # sizes beyond the columns that vary are of these
    sizes = {min(tau, len(truth.referee.supports(tau)[0])) for tau in record.request.taus}
    if {*pairs} != {(gamma, tau) for gamma in record.request.gammas for tau in sizes}:
        yield f"common: the table is of {pairs}"
    value = {pair: {S: truth.common(S, pair[0]) for S in truth.referee.supports(pair[1])} for pair in pairs}
    best = min(min(some.values()) for some in value.values())
    yield from inside("common", record.lower, record.upper, (best, best))
    S = truth.support(record.support)
    own = truth.common(S, record.gamma)
    yield from near("common CV error", record.cv_error, (own, own))
    if record.status == "proved" and own > best * (1 + 2 * gap + ROUNDING) + LEAST:
        yield f"common: {S} has {own!r}, the least is {best!r}"
    for row in record.table:
        least = min(value[row.gamma, row.tau].values())
        yield from inside(f"common at {row.gamma, row.tau}", row.lower, row.cv_error, (least, least))
        some = truth.common(truth.support(row.support), row.gamma) if math.isfinite(row.cv_error) else math.inf
        if math.isfinite(row.cv_error):
            yield from near(f"common CV error of {row.gamma, row.tau}", row.cv_error, (some, some))


def of_path(truth: Truth, record: PathRecord) -> Iterator[str]:
    for row in record.path:
        yield from of_model(truth, f"path {row.gamma, row.tau}", row, row.gamma, row.proved)


def of_fit(truth: Truth, record: FitRecord) -> Iterator[str]:
    yield from of_model(truth, "fit", record, record.gamma, record.status == "proved")


def of_nested(truth: Truth, record: Record, outer: FoldPlan, inner: dict[int, FoldPlan]) -> Iterator[str]:
    """Without each outer fold the pair is the best of its rows, and its fit scores the fold."""
    nested = record.nested
    if nested is None:
        return
    total = weight = 0.0
    for one in nested.folds:
        rows = np.asarray(outer.train_rows(one.fold))
        measured = replace(truth.referee, measured=rows, known={})
        inside_of = Truth(measured, truth.data.take(rows), inner[one.fold], rows)
        h = {(g, t): inside_of.h(g, t) for g in record.request.gammas for t in record.request.taus}
        least = min(high for _, high in h.values())
        what = f"outer fold {one.fold}"
        if one.status == "proved":
            yield from near(f"{what}, CV error", one.cv_error, h[one.gamma, one.tau])
            if h[one.gamma, one.tau][0] > least * (1 + 2 * record.request.gap + ROUNDING) + LEAST:
                yield f"{what}: {one.gamma, one.tau} is chosen, the least is {least!r}"
        fits, at = inside_of.one(inside_of.support(one.support), one.gamma)
        if one.status == "proved" and fits.value[at] > inside_of.least(one.gamma, one.tau) * (1 + 1e-6):
            yield f"{what}: {one.support} is not best on its rows"
        out = outer.scored_rows(one.fold)
        lost = float(fits.losses[at][out] @ truth.referee.w[out])
        size = float(truth.referee.w[out].sum())
        yield from near(f"{what}, error", one.error, (lost / size, lost / size), 1e-6)
        total, weight = total + one.error * size, weight + size
    yield from near("nested error", nested.error, (total / weight, total / weight))
    classes = nested.classes
    if classes is not None:
        yield from inside("nested log loss", classes.lower, classes.upper, (nested.error, nested.error))


def of_average(truth: Truth, record: Record, average: Average) -> Iterator[str]:
    """Weights, average and best subset (docs/theory/average.md)."""
    r, every = truth.referee, len(truth.referee.varying)
    pairs = [(row.gamma, row.tau) for row in record.table]
    if every > max(record.request.taus):
        pairs += [(g, every) for g in sorted({g for g, _ in pairs})]
    scored, times = truth.scored, np.bincount(np.concatenate(truth.scored), minlength=truth.data.n)
    seen = times > 0

    def losses(gamma: float, tau: int) -> np.ndarray:
        total = np.zeros(truth.data.n)
        for fold, rows in enumerate(scored):
            fits = truth.fits(gamma, tau, fold)
            total[rows] += fits.losses[int(fits.value.argmin())][rows].astype(float)
        return (total / np.maximum(times, 1))[seen]

    whole = bool(np.all(r.w == np.floor(r.w)))
    rows = (r.w if whole else np.ones(truth.data.n))[seen]
    share = (r.w * times)[seen] / float(r.w @ times)
    n, least, distances = float(rows.sum()), losses(record.gamma, record.tau), []
    for pair in pairs:
        change = losses(*pair) - least
        mean = float(change @ share)
        spread = math.sqrt(float((change - mean) ** 2 @ (share**2 / rows)) * n / max(n - 1.0, 1.0))
        near_one = mean <= 1e-9 * float(least @ share)
        distances.append(0.0 if near_one else mean / spread if spread > 0.0 else math.inf)
    weights = np.array([math.exp(-z - z * z) for z in distances])
    weights[weights < 0.02 * weights.max()] = 0.0
    models = [(gamma, min(tau, every)) for gamma, tau in pairs]
    weights[[models.index(model) < i for i, model in enumerate(models)]] = 0.0
    said, some = np.array([pair.weight for pair in average.pairs]), len(record.table)
    if np.any(weights[some:]) and not np.any(said[some:]):  # no size is near the average with fits of all columns
        weights[some:] = 0.0
    weights /= weights.sum()
    for model in {*models}:  # which of its pairs is nearest may be a matter of rounding
        mine = np.array([one == model for one in models])
        told, right = float(said[mine].sum()), float(weights[mine].sum())
        if abs(told - right) > 1e-4:
            yield f"average: the weight of {model} is said to be {told!r}, it is {right!r}"
    target = np.zeros(truth.data.n)
    for used in average.used:
        assert used.fit is not None
        fits, at = truth.one(truth.support(average.supports[used.fit]), used.gamma)
        if not used.estimate and fits.value[at] > truth.least(used.gamma, used.tau) * (1 + TIED * 1e3):
            yield f"average: {average.supports[used.fit]} is not best at {used.gamma, used.tau}"
        target += used.weight * fits.predictors[at].astype(float)
    found, total = average.model, r.w.sum()
    size = float(_curvatures(r, target) @ target**2)
    best = _least_squares(r, found.tau, target)
    yield from near("average, objective", found.objective, (best - 1e-9 * size, best + 1e-9 * size), 1e-5)
    if found.tau > 0:
        fewer = _least_squares(r, found.tau - 1, target)
        if fewer / total <= 0.005 * record.cv_error * (1 - 1e-5):
            yield f"average: {found.tau - 1} features keep it"
        if average.fewer is not None and average.fewer > fewer * (1 + ROUNDING) + 1e-9 * size:
            yield f"average: fewer features have {fewer!r}, at least {average.fewer!r} is said"


def _curvatures(r: Referee, target: np.ndarray) -> np.ndarray:
    """Weights of rows where a loss is replaced by squares about predictors: half of its curvature there."""
    return np.asarray(0.5 * r.w * r.row_loss(target[None], float)[2][0])


def _least_squares(r: Referee, size: int, target: np.ndarray) -> float:
    """Least objective of so many columns for predictors instead of the target."""
    heft = _curvatures(r, target)
    heft = np.maximum(heft, 1e-12 * heft.max())
    root, values = np.sqrt(heft), []
    weighed = Referee(r.loss, r.X, r.y, heft, r.e, r.scale, r.intercept).penalties().astype(float)
    for S in r.supports(size):
        X, y = r.X[:, list(S)], target
        if r.intercept:
            X, y = X - np.average(X, axis=0, weights=heft), y - np.average(y, weights=heft)
        A = np.vstack([root[:, None] * X, np.diag(np.sqrt(0.5e-6 * weighed[list(S)]))])
        b = np.append(root * y, np.zeros(len(S)))
        rest = b - A @ np.linalg.lstsq(A, b, rcond=None)[0] if S else b
        values.append(float(rest @ rest))
    return min(values)
