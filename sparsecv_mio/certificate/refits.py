"""Check records of `fit` and the optimality of supports: by a refit, by enumeration, or by exchanges of one column.

If there are too many supports to enumerate, every exchange of one column is tried. If an exchange lowers the training
objective, the support is not optimal. Let G be the Gram matrix of the training rows, M the sum of G and the penalty,
and c the products of the columns with the target. For the support S, let b be the fit and `V = M_S^{-1}`. Let `G_S.` be
the rows S of G, and `B = V G_S.`. Removing column j and adding column i changes the objective by (theory sections 4 and
10)

    b_j^2 / V_jj  -  (e_i + B_ji b_j / V_jj)^2 / (d_i + B_ji^2 / V_jj),     e = c - G b,  d_i = M_ii - G_iS B_i

`make_design` constructs the `Design` of a record from its loss, columns, restrictions and folds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import MOST_FITS, Checks
from sparsecv_mio.certificate.claims import check_gap, check_target
from sparsecv_mio.certificate.cox_design import CoxDesign
from sparsecv_mio.certificate.design import Design, Model, Support, Tell
from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, PathRecord
from sparsecv_mio.certificate.glm_design import FitStore, GlmDesign
from sparsecv_mio.certificate.parts import Side
from sparsecv_mio.certificate.read_back import StoredRecord
from sparsecv_mio.certificate.records import PathRow, Record, Refit
from sparsecv_mio.certificate.restrictions import NO_EFFECT, AllowedSupports, restrictions_of
from sparsecv_mio.certificate.ridge_design import LEAST_CONDITION, NO_ROWS, RidgeDesign, penalties
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.model_space import NONE, Restrictions
from sparsecv_mio.problem.beyond_floats import size_of_target
from sparsecv_mio.problem.objective import evaluate_objective, ridge_weights, varying_columns
from sparsecv_mio.units import ACCURATE_RTOL, OUTWARD, TIE_RTOL

EXCHANGE_LIMIT = 2e10  # maximum number of operations of exchanges


class Exchanges:
    """Training objectives of the neighbours of a support, from full-data moments minus those of held-out rows.

    Parameters
    ----------
    design : RidgeDesign
        Design of all varying columns.
    """

    def __init__(self, design: RidgeDesign, gamma: float) -> None:
        self.design, self.gamma = design, gamma
        self.unit = design.unit
        Z, t, root = self.unit.Z, self.unit.t, self.unit.root
        self.sums, self.total, self.weight = root @ Z, float(root @ t), float(root @ root)
        self.moment, self.squares = Z.T @ t, np.einsum("ij,ij->j", Z, Z)
        self.full_rows = lru_cache(maxsize=8)(self._multiply_columns)

    def cost(self, supports: list[Support]) -> float:
        """Return the approximate number of operations for all folds."""
        size = max((len(s) for s in supports), default=0) + 1.0
        n, q = self.unit.Z.shape
        return q * size * (len(set(supports)) * n + n + len(supports) * 4.0 * size)

    def _multiply_columns(self, support: Support) -> FloatArray:
        return np.asarray(self.unit.Z[:, list(support)].T @ self.unit.Z)

    def has_better_fit(self, train: IntArray, other: Support, support: Support) -> bool:
        """Return True if another support fits the training rows better, by more than a tie.

        Parameters
        ----------
        train : int array
            Training rows.
        other, support : tuple of int
            Positions in `design.columns`.
        """
        mine = self.design.refit(support, self.gamma, train).objective
        theirs = self.design.refit(other, self.gamma, train).objective
        return theirs * (1.0 + 2.0 * TIE_RTOL) + self.design.refit_rounding(theirs) < mine

    def best(self, test: IntArray, support: Support) -> Support | None:
        """Return the best support one column away without the rows `test`; None if no such support is better."""
        S = np.array(support, dtype=np.int64)
        Z, t = self.unit.Z[test], self.unit.t[test]
        cross = self.full_rows(support) - Z[:, S].T @ Z
        c, d = self.moment - Z.T @ t, self.squares - np.einsum("ij,ij->j", Z, Z)
        if self.design.intercept == "fold":
            root = self.unit.root[test]
            n = self.weight - float(root @ root)
            s, y = self.sums - root @ Z, self.total - float(root @ t)
            cross, c, d = cross - np.outer(s[S], s) / n, c - s * (y / n), d - s * s / n
        penalty = penalties(self.gamma, self.unit.weight_without(test))
        M = cross[:, S] + np.diag(penalty[S])
        values, vectors = np.linalg.eigh(M)
        if values.size and not values[0] > LEAST_CONDITION**2 * values[-1]:
            return None
        V = (vectors / values) @ vectors.T
        b, B = V @ c[S], V @ cross
        e, whole = c - cross.T @ b, d + penalty
        d = whole - np.einsum("ij,ij->j", cross, B)
        v = np.diag(V)[:, None]
        gain = (e + B * b[:, None] / v) ** 2 / np.maximum(d + B * B / v, LEAST_CONDITION * whole)
        change = b[:, None] ** 2 / v - gain
        change[:, S] = np.inf
        change[np.isin(S, self.design.forced)] = np.inf
        if change.size == 0 or not change.min() < 0.0:
            return None
        j, i = np.unravel_index(int(np.argmin(change)), change.shape)
        return tuple(sorted({*support, int(i)} - {int(S[j])}))


def improvable_folds(
    design: RidgeDesign, gamma: float, supports: list[Support], others: list[Support], wanted: list[int]
) -> Iterator[tuple[int, str]]:
    """Yield folds whose support is worse than a neighbour or another given support, and what beats it.

    Parameters
    ----------
    design : RidgeDesign
        Design of all varying columns.
    supports : list of tuple of int
        Supports by fold, as sorted positions in `design.columns`.
    others : list of tuple of int
        Supports of at most the same size, tried in every fold in this order as far as `MOST_FITS` allows.
    wanted : list of int
        Folds to check.

    Yields
    ------
    fold, words
        Index of a fold, and a description of what beats its support.
    """
    exchanges, folds, names = Exchanges(design, gamma), design.folds, design.names
    rivals = others[: max(1, MOST_FITS // folds.k)]
    for fold in wanted:
        support = supports[fold]
        better, train = exchanges.best(folds.left_out(fold), support), folds.train_rows(fold)
        if better is not None and exchanges.has_better_fit(train, better, support):
            new, old = set(better) - set(support), set(support) - set(better)
            exchange = f"{names[new.pop()]} instead of {names[old.pop()]}"
            yield fold, f"the support with {exchange} has a smaller training objective"
            continue
        rival = min(rivals, key=lambda other: design.refit(other, gamma, train).objective) if rivals[1:] else rivals[0]
        if rival != support and exchanges.has_better_fit(train, rival, support):
            yield fold, f"another support of the record, {design.join_names(rival)}, has a smaller training objective"


def checked_support(
    checks: Checks, design: Design, names: Iterable[str], tau: int, path: str, exact: bool = False,
    what: str = "of the data",
) -> Support | None:  # fmt: skip
    """Return the positions of the columns of a model; None, with a failure, if they are invalid.

    Parameters
    ----------
    design : Design
        Design of the columns that may be in a support.
    names : iterable of str
        The features that a record states.
    tau : int
        Maximum number of features.
    path : str
        Path of the field.
    exact : bool
        True if smaller supports are invalid.
    what : str
        Description of the allowed features.
    """
    support, size = design.positions(names), design.most_columns(tau)
    if support is None or len(support) > size or (exact and len(support) < size):
        n_features = size - len(design.adjusted_names)
        checks.require(False, path, f"is not a set of {'' if exact else 'up to '}{n_features} features {what}")
        return None
    return support


def check_allowed(checks: Checks, design: Design, support: Support, tau: int, path: str) -> bool:
    """Check that a support has every forced column and satisfies the other restrictions; return the result.

    Parameters
    ----------
    design : Design
        Design of all columns that may be in a support.
    support : tuple of int
        Positions in `design.columns`.
    path : str
        Prefix of `support` in messages.
    """
    if design.allowed is not None:
        right = design.allowed.holds(support, tau)
        return checks.require(right, f"{path}support", "does not satisfy the restrictions")
    lacking = [j for j in design.forced if j not in support]
    words = f"does not contain {design.join_names(lacking)}, which is forced in"
    return checks.require(not lacking, f"{path}support", words)


def check_signs(checks: Checks, design: Design, support: Support, model: Model, path: str) -> bool:
    """Check that the coefficients of a fit satisfy the sign constraints; return the result.

    Parameters
    ----------
    support : tuple of int
        Positions in `design.columns`.
    model : RidgeFit
        Fit of the support.
    path : str
        Prefix of `support` in messages.
    """
    right = design.has_required_signs(support, model)
    return checks.require(right, f"{path}support", "the fit of this support has a coefficient of the wrong sign")


def check_bounds(checks: Checks, design: Design, coefficients: Mapping[str, float], path: str) -> None:
    """Check that stated coefficients are within their bounds.

    Parameters
    ----------
    coefficients : mapping of str to float
        Coefficients of a model by feature.
    path : str
        Prefix of the fields in messages.
    """
    ends = {} if design.allowed is None else design.allowed.asked.bounds
    for name, value in coefficients.items() if design.has_bounds else ():
        low, high = ends.get(name, (-math.inf, math.inf))
        words = f"is {value!r}, outside the bounds {low:g} and {high:g}"
        checks.require(low <= value <= high, f"{path}coefficients.{name}", words)


def check_fit(
    checks: Checks, design: Design, said: Record | PathRow | FitRecord | CommonRecord,
    row: Refit | PathRow | CommonRecord, path: str = "",
) -> Model | None:  # fmt: skip
    """Refit a support to all rows, and compare names, coefficients and intercept.

    Parameters
    ----------
    said : Record, PathRow, FitRecord or CommonRecord
        Part of the record with the model; its objective is in `row`.
    row : Refit, PathRow or CommonRecord
        Part of the record with gamma and tau.
    path : str
        Prefix of the fields in messages.

    Returns
    -------
    RidgeFit, GlmModel or None
        The refit; None if the support is invalid.
    """
    is_proved = isinstance(row, CommonRecord) or row.proved
    exact = design.allowed is None and is_proved  # otherwise a smaller support may be optimal, or the best one known
    support = checked_support(checks, design, said.support, row.tau, f"{path}support", exact)
    if support is None or not check_allowed(checks, design, support, row.tau, path):
        return None
    model: Model = design.refit(support, row.gamma, None)
    check_signs(checks, design, support, model, path)
    names = [design.names[j] for j in support]
    words = "do not belong to the features of the support"
    if not checks.require(set(said.coefficients) == set(names), f"{path}coefficients", words):
        return model
    rooms = design.coefficient_rooms(support, row.gamma, model)
    agree = [
        checks.close(f"{path}coefficients.{name}", said.coefficients[name], value, room)
        for name, value, room in zip(names, model.beta.tolist(), rooms.tolist(), strict=True)
    ]
    check_bounds(checks, design, said.coefficients, path)
    beta = np.where(agree, [said.coefficients[name] for name in names], model.beta)
    expected = design.expected_intercept(model, beta, np.where(agree, 0.0, rooms))
    checks.close(f"{path}intercept", said.intercept, *expected)
    checks.mark_recomputed_fields(f"{path}coefficients")
    return model


def check_objective(checks: Checks, design: Design, row: Refit | PathRow, model: Model, gap: float, path: str) -> None:
    """Compare the objective with its refit, its bounds with the objective, and `proved` with the width of the bounds.

    Parameters
    ----------
    model : RidgeFit or GlmModel
        Refit of the support.
    gap : float
        Requested relative gap.
    path : str
        Prefix of the fields in messages.
    """
    slack, wanted = design.rounding(model), max(gap, design.proved_rtol)
    checks.close(f"{path}objective", row.objective, model.objective, slack)
    checks.require_at_most(f"{path}lower", row.lower, row.objective, "the objective", OUTWARD * row.objective)
    checks.require_at_least(f"{path}upper", row.upper, row.objective, "the objective", OUTWARD * row.upper)
    closed = math.isfinite(row.upper) and row.upper - row.lower <= wanted * row.upper + 2.0 * slack
    words = "must be false, because upper - lower exceeds the requested gap"
    checks.require(closed or not row.proved, f"{path}proved", words)
    wide = row.upper == math.inf or row.upper - row.lower > wanted * row.upper * (1.0 - 1e-9)
    checks.require(row.proved or wide, f"{path}proved", "must be true, because upper - lower is within the gap")


def check_neighbours(checks: Checks, design: Design, row: Refit | PathRow, model: Model, path: str) -> bool:
    """Compare the lower bound of a full-data fit with the best support one column away, if all are allowed.

    Parameters
    ----------
    model : RidgeFit or GlmModel
        Refit of the support.
    path : str
        Prefix of the fields in messages.
    """
    if not isinstance(design, RidgeDesign) or design.allowed is not None:  # a neighbour may violate the restrictions
        return False
    better = Exchanges(design, row.gamma).best(NO_ROWS, design.places(model))
    if better is not None:
        value = design.refit(better, row.gamma, None).objective
        words = f"{value!r}, the objective of {design.join_names(better)}"
        checks.require_at_most(f"{path}lower", row.lower, value, words, design.objective_slack(value))
    return True


def check_optimum(
    checks: Checks, design: Design, row: Refit | PathRow, path: str, start: Support = (), most: int = MOST_FITS
) -> bool:
    """Compare the lower bound of a full-data fit with the minimum over all supports; return False if it is unknown.

    The upper bound is at least the objective of a support.

    Parameters
    ----------
    path : str
        Prefix of the fields in messages.
    start : tuple of int
        A good support.
    most : int
        Maximum number of fits.
    """
    best = design.best_fit(row.gamma, row.tau, start, most)
    if best is None:
        return False
    words, slack = f"the recomputed minimum {best.objective!r}", design.rounding(best)
    checks.require_at_most(f"{path}lower", row.lower, best.objective, words, slack)
    return True


WRITE_PROOF = "run the command of the record again with --proof FILE, and check the proof with `sparsecv check`"
TRY_LESS = "use fewer features, sizes or gammas"


def make_design(
    record: StoredRecord, dataset: Dataset, plan: FoldPlan | None = None, tell: Tell | None = None
) -> Design:
    """Return the design of a record for its data in the form of its loss, and its folds.

    Parameters
    ----------
    tell : callable, optional
        Function that long enumerations call with the numbers of fits made and allowed.
    """
    how = dataset, record.data.scale, record.data.intercept, restrictions_of(record)
    if record.loss.is_quadratic:
        return RidgeDesign.from_restrictions(*how, plan=plan)
    advice = WRITE_PROOF if has_proof(record) else TRY_LESS
    store = FitStore() if tell is None else FitStore(tell=tell)
    made = GlmDesign if record.loss.target.is_sum_over_rows else CoxDesign
    return made.from_restrictions(*how, plan=plan, loss=record.loss, advice=advice, store=store)


def has_proof(record: StoredRecord) -> bool:
    """Return True if `--proof` covers the command of a record without restrictions."""
    if record.loss.target.proof_restrictions is None or not isinstance(record, Record | PathRecord | FitRecord):
        return False
    if isinstance(record, Record) and (
        record.request.na_within or record.request.scale_within or record.status != "proved"
    ):
        return False
    data = record.data
    weighted = any(column is not None for column in (data.weights, data.class_weight, data.trials))
    return not weighted and restrictions_of(record) == NONE


def verify_fit(checks: Checks, record: FitRecord, dataset: Dataset) -> bool:
    """Check the record of one MIO: its model, bounds, gap and status; return True if every check could be completed.

    The model must satisfy the side constraints of the record. If the side constraints allow few supports, the lower
    bound is compared with every allowed model, or with every model within an assumed box. Older records lack the side
    constraints; neither the optimality of the support nor the lower bound can be proved again for them.
    """
    words = f"{record.tau} is out of range; the data have {dataset.p} features"
    checks.require(0 <= record.tau <= dataset.p, "tau", words)
    side, design = record.side, make_design(record, dataset, tell=checks.tell)
    support = checked_support(checks, design, record.support, record.tau, "support")
    if support is None or (side is not None and not _check_side(checks, record, side, dataset)):
        return False
    if not check_target(checks, record, dataset):
        return False
    if isinstance(design, RidgeDesign):
        _check_coefficients(checks, record, design, support)
        slack = 100.0 * design.objective_slack(record.objective)
        checks.mark_recomputed_fields("coefficients")
        title = "objective and intercept, from the coefficients; bounds, gap and status agree with each other"
    else:
        model = check_fit(checks, design, record, _claim(record))
        if model is None:
            return False
        slack = design.rounding(model)
        checks.close("objective", record.objective, model.objective, slack)
        checks.end_part("coefficients, intercept and objective of the full-data fit")
        title = "bounds, gap and status agree with each other"
    _check_claims(checks, record, slack, design.refit((), record.gamma, None).objective)
    checks.mark_bounded_fields("gamma", "support")
    checks.end_part(title)
    if isinstance(design, RidgeDesign):
        _compare_with_supports(checks, record, design)
    elif (
        side is None
        or side.together
        or side.box
        or {"at_most", "hierarchy"} & {*restrictions_of(record).side_constraints}
    ):
        checks.caveat = "optimality not verified (with side constraints other than forced features, factors and bounds)"
    elif check_optimum(checks, design, _claim(record), "", support):
        checks.end_part("lower and objective, by branching over all supports")
    else:
        checks.caveat = f"optimality not verified ({design.limit_words})"
    if "optimality not verified" in checks.caveat:
        checks.leaves("not verified: that no other subset has a smaller objective", "support")
    return True


def _claim(record: FitRecord) -> Refit:
    """Return the claims about the objective of a fit, whose status depends on the allowance of a solver too."""
    return Refit(record.gamma, record.tau, record.objective, record.lower, record.upper, record.status == "proved")


def _compare_with_supports(checks: Checks, record: FitRecord, design: RidgeDesign) -> None:
    """Compare the lower bound with models allowed by the side constraints, or within an assumed box, if these are few.

    With an assumed box, only supports whose ridge fit lies within the box are compared.
    """
    side, end = record.side, record.assumed_box
    if side is not None:
        together = AllowedSupports(design.names, _merge_box(side), side.together or ())
        design = replace(design, allowed=together)
    reason = design.full_data_obstacle([record.tau], 1)
    checks.caveat, compared = _describe_comparison(record, reason)
    if end is not None:
        beyond = [name for name, value in record.coefficients.items() if not abs(value) <= end]
        words = f"is {end!r}, but must be at least the absolute value of the coefficient of {', '.join(beyond)}"
        checks.require(not beyond, "assumed_box", words)
    if reason or not compared:
        return
    if end is None:
        least = design.best_fit(record.gamma, record.tau).objective
    else:
        least = _least_in_box(design, record, end * (1.0 - ACCURATE_RTOL))
    slack = design.objective_slack(least) if math.isfinite(least) else 0.0
    words = f"the objective {least!r} of a model that satisfies the side constraints"
    checks.require_at_most("lower", record.lower, least, words, slack)
    checks.end_part(f"lower, by enumeration of all {compared}")


def _describe_comparison(record: FitRecord, reason: str) -> tuple[str, str]:
    """Return the caveat of a comparison, and the supports that are compared; empty without side constraints.

    Parameters
    ----------
    reason : str
        Reason why supports are not compared; empty if they are.
    """
    side, end = record.side, record.assumed_box
    if end is not None:
        caveat = f"the lower bound is conditional: it holds for coefficients within {end:g} of zero"
        if reason:
            caveat += "; whether all coefficients satisfy this bound is not verified (too many supports to try)"
        return caveat, "supports whose coefficients are within the assumed box"
    if side is None:
        return "optimality not verified (the record does not contain the side constraints)", ""
    if reason:
        return f"optimality not verified ({reason})", "supports"
    return "", "supports within the side constraints"


def _least_in_box(design: RidgeDesign, record: FitRecord, end: float) -> float:
    """Return the minimum objective of ridge fits with coefficients within [-end, end]; inf if there are none."""
    least = math.inf
    for support in (tuple(row) for table in design.sets(record.tau) for row in table.tolist()):
        if design.allowed is None or design.allowed.allows(support):
            model = design.refit(support, record.gamma, None)
            if np.all(np.abs(model.beta) * (1.0 + ACCURATE_RTOL) <= end):
                least = min(least, model.objective)
    return least


def _check_coefficients(checks: Checks, record: FitRecord, design: RidgeDesign, support: Support) -> None:
    """Check objective and intercept at the stored coefficients, which side constraints may have moved."""
    dataset, columns = design.dataset, design.columns[list(support)].tolist()
    names, words = [dataset.names[j] for j in columns], "do not belong to the features of the support"
    if not checks.require(set(record.coefficients) == set(names), "coefficients", words):
        return
    beta = np.array([record.coefficients[name] for name in names])
    ridge = ridge_weights(columns, design.free, record.gamma)
    objective, center = evaluate_objective(
        dataset.X, dataset.y, columns, beta, ridge, scale=record.data.scale, intercept=record.data.intercept,
        weights=dataset.row_weights,
    )  # fmt: skip
    slack = 100.0 * design.objective_slack(objective)
    checks.close("objective", record.objective, objective, slack)
    level = float(np.abs(dataset.X[:, columns]).max(axis=0, initial=0.0) @ np.abs(beta)) + np.abs(dataset.y).max()
    checks.close("intercept", record.intercept, center, 1e-12 * level)


def _check_claims(checks: Checks, record: FitRecord, slack: float, nothing: float) -> None:
    """Check bounds, gap and status against each other.

    Parameters
    ----------
    slack : float
        Rounding error of the objective.
    nothing : float
        Objective without columns.
    """
    check_gap(checks, record)
    checks.require(0.0 <= record.requested_gap < 1.0, "requested_gap", f"{record.requested_gap!r} is not in [0, 1)")
    checks.require(record.lower <= record.objective + slack, "lower", f"{record.lower!r} exceeds the objective")
    right = abs(record.objective - record.upper) <= slack + 1e-3 * record.upper
    checks.require(right, "upper", f"{record.upper!r} differs from the objective {record.objective!r}")
    room = min(1e-3 * record.upper, 4e-6 * max(nothing, record.upper)) + slack  # bounds may exclude the null model
    words = f"is {record.allowance!r}, but must be from 0 to {room!r}, the bound on the rounding error"
    checks.require(0.0 <= record.allowance <= room, "allowance", words)
    checks.leaves("checked only for its range", "requested_gap", "allowance")
    if record.status == "proved":
        width = record.requested_gap * record.upper + record.allowance
        closed = record.upper - record.lower <= width * (1.0 + 1e-12)
        checks.require(closed, "status", "upper - lower exceeds the requested gap")


def _check_side(checks: Checks, record: FitRecord, side: Side, dataset: Dataset) -> bool:
    """Check side constraints: they concern features of the data, and the model satisfies them; return the result.

    Parameters
    ----------
    record : FitRecord
        Record whose support has features of the data.
    side : Side
        Side constraints of the record.
    """
    features = set(dataset.names)
    right = [checks.require(name in features, f"side.{place}", f"{name!r} is not a feature")
             for place, name in _features(side)]  # fmt: skip
    if not all(right):
        return False
    names = tuple(dataset.names[j] for j in varying_columns(dataset.X).tolist())
    allowed = AllowedSupports(names, side.restrictions or NONE, side.together or ())
    keeps = features.issuperset(record.support) and set(names).issuperset(record.support)
    places = [*(names.index(name) for name in record.support), *allowed.adjusted_columns] if keeps else []
    keeps = keeps and allowed.allows(places) and allowed.count(places) <= record.tau
    checks.require(keeps, "support", "does not satisfy the side constraints")
    _check_coefficient_ends(checks, record, side, dataset)
    checks.mark_bounded_fields("side.")
    return checks.end_part("side constraints: all their features exist in the data, and the model satisfies them")


def _check_coefficient_ends(checks: Checks, record: FitRecord, side: Side, dataset: Dataset) -> None:
    """Check that bounded coefficients lie between their ends."""
    ends = _merge_box(side).bounds
    X, y = dataset.X, size_of_target(dataset, record.data.intercept)
    for name, value in record.coefficients.items():
        if name in ends and name in dataset.names:
            column = X[:, dataset.names.index(name)]
            reach = float(np.abs(column).max() if record.data.intercept == "none" else np.ptp(column))
            low, high = ends[name]
            slack = NO_EFFECT * y / reach if reach > 0.0 else 0.0
            below, above = (slack + ACCURATE_RTOL * abs(end) if math.isfinite(end) else 0.0 for end in (low, high))
            words = f"is {value!r}, but the constraints allow only [{low:g}, {high:g}]"
            checks.require(low - below <= value <= high + above, f"coefficients.{name}", words)


def _merge_box(side: Side) -> Restrictions:
    """Return the restrictions of a fit with the bounds that older records have in `box`."""
    restrictions = side.restrictions or NONE
    return replace(restrictions, coef_bounds=(*restrictions.coef_bounds, *(side.box or ())))


def _features(side: Side) -> Iterator[tuple[str, str]]:
    """Yield every named feature, with the name of its field."""
    restrictions = side.restrictions or NONE
    yield from ((f"restrictions.{field}", name) for field, name in restrictions.named_columns())
    yield from (("together", name) for group in side.together or () for name in group)
    yield from (("box", bounds.feature) for bounds in side.box or ())
