"""Checks of full-data fits by refitting, by enumeration, and by exchanging one column of a support.

If there are too many supports to enumerate, every exchange of one column in every fold tests whether a support can be
optimal. With V = M_S^{-1}, B = V G_S. and b the fit of S, removing j and adding i changes the objective by (theory
sections 4 and 10)

    b_j^2 / V_jj  -  (e_i + B_ji b_j / V_jj)^2 / (d_i + B_ji^2 / V_jj),     e = c - G b,  d_i = M_ii - G_iS B_i
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.certificate.checked_fields import MOST_FITS, Checks
from sparsecv_mio.certificate.enumeration import SINGULAR, UnitColumns, least_objective, positions
from sparsecv_mio.certificate.fit_records import CommonRecord
from sparsecv_mio.certificate.records import PathRow, Record, Refit
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.problem.coordinates import size_of_target
from sparsecv_mio.problem.objective import RidgeFit
from sparsecv_mio.units import CROSSING_RTOL, PROVED_RTOL, TIE_RTOL

EXCHANGE_LIMIT = 2e10  # maximum number of operations of exchanges


class Exchanges:
    """Training objectives of the neighbours of a support, from full-data moments minus those of held-out rows.

    Parameters
    ----------
    design : UnitColumns
        Design of all varying columns.
    """

    def __init__(self, design: UnitColumns, gamma: float) -> None:
        self.design, self.gamma = design, gamma
        self.penalty = gamma / 2.0 * design.weight
        Z, t = design.Z, design.t
        root = design.root
        self.sums, self.total, self.weight = root @ Z, float(root @ t), float(root @ root)
        self.moment, self.squares = Z.T @ t, np.einsum("ij,ij->j", Z, Z)
        self._rows: dict[tuple[int, ...], FloatArray] = {}

    def cost(self, supports: list[tuple[int, ...]]) -> float:
        """Return the approximate number of operations for all folds."""
        size = max((len(s) for s in supports), default=0) + 1.0
        n, q = self.design.Z.shape
        return q * size * (len(set(supports)) * n + n + len(supports) * 4.0 * size)

    def has_better_fit(self, train: IntArray, other: tuple[int, ...], support: tuple[int, ...]) -> bool:
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
        return theirs * (1.0 + 2.0 * TIE_RTOL) + self.design.rounding(theirs) < mine

    def best(self, test: IntArray, support: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the best support one column away without the rows `test`; None if no such support is better."""
        S = np.array(support, dtype=np.int64)
        Z, t = self.design.Z[test], self.design.t[test]
        cross = self._full_rows(support) - Z[:, S].T @ Z
        c, d = self.moment - Z.T @ t, self.squares - np.einsum("ij,ij->j", Z, Z)
        if self.design.intercept == "fold":
            root = self.design.root[test]
            n = self.weight - float(root @ root)
            s, y = self.sums - root @ Z, self.total - float(root @ t)
            cross, c, d = cross - np.outer(s[S], s) / n, c - s * (y / n), d - s * s / n
        M = cross[:, S] + np.diag(self.penalty[S])
        values, vectors = np.linalg.eigh(M)
        if values.size and not values[0] > SINGULAR**2 * values[-1]:
            return None
        V = (vectors / values) @ vectors.T
        b, B = V @ c[S], V @ cross
        e, whole = c - cross.T @ b, d + self.penalty
        d = whole - np.einsum("ij,ij->j", cross, B)
        v = np.diag(V)[:, None]
        gain = (e + B * b[:, None] / v) ** 2 / np.maximum(d + B * B / v, SINGULAR * whole)
        change = b[:, None] ** 2 / v - gain
        change[:, S] = np.inf
        change[np.isin(S, self.design.forced)] = np.inf
        if change.size == 0 or not change.min() < 0.0:
            return None
        j, i = np.unravel_index(int(np.argmin(change)), change.shape)
        return tuple(sorted({*support, int(i)} - {int(S[j])}))

    def _full_rows(self, support: tuple[int, ...]) -> FloatArray:
        if support not in self._rows:
            if len(self._rows) > 8:
                self._rows.clear()
            self._rows[support] = self.design.Z[:, list(support)].T @ self.design.Z
        return self._rows[support]


def improvable_folds(
    design: UnitColumns,
    folds: FoldPlan,
    gamma: float,
    supports: list[tuple[int, ...]],
    others: list[tuple[int, ...]],
    wanted: list[int],
) -> Iterator[tuple[int, str]]:
    """Yield folds whose support is worse than a neighbour or another given support, and what beats it.

    Parameters
    ----------
    design : UnitColumns
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
    exchanges = Exchanges(design, gamma)
    others = others[: max(1, MOST_FITS // folds.k)]
    names = design.names
    least = _best_other_supports(design, folds, gamma, others, wanted)
    for fold in wanted:
        support = supports[fold]
        better, train = exchanges.best(folds.left_out(fold), support), folds.train_rows(fold)
        if better is not None and exchanges.has_better_fit(train, better, support):
            new, old = set(better) - set(support), set(support) - set(better)
            yield fold, f"{names[new.pop()]} instead of {names[old.pop()]} has a smaller training objective"
            continue
        rival = least.get(fold)
        if rival is not None and rival != support and exchanges.has_better_fit(train, rival, support):
            yield fold, f"{design.join_names(rival)}: another support of the record, has a smaller training objective"


def _best_other_supports(
    design: UnitColumns, folds: FoldPlan, gamma: float, others: list[tuple[int, ...]], wanted: list[int]
) -> dict[int, tuple[int, ...]]:
    """Return, for every fold, the given support with the minimum training objective, by refits."""
    if len(others) < 2:
        return dict.fromkeys(range(folds.k), others[0]) if others else {}
    best: dict[int, tuple[int, ...]] = {}
    for fold in wanted:
        train = folds.train_rows(fold)
        values = [design.refit(support, gamma, train).objective for support in others]
        best[fold] = others[int(np.argmin(values))]
    return best


def checked_support(
    checks: Checks, names: Iterable[str], index: Mapping[str, int], size: int, path: str, exact: bool = False,
    what: str = "of the data", adjusted: Sequence[str] = (),
) -> tuple[int, ...] | None:  # fmt: skip
    """Return the positions of the columns of a model; None, with a failure, if they are invalid.

    Parameters
    ----------
    names : iterable of str
        The features that a record states.
    index : mapping of str to int
        Positions by name.
    size : int
        Maximum number of columns, with the adjusted columns.
    path : str
        Path of the field.
    exact : bool
        True if smaller supports are invalid.
    what : str
        Description of the allowed features.
    adjusted : sequence of str
        Names of the adjusted columns.
    """
    support = positions(names, index, adjusted)
    if support is None or len(support) > size or (exact and len(support) < size):
        n_features = size - len(adjusted)
        checks.require(False, path, f"is not a set of {'' if exact else 'up to '}{n_features} features {what}")
        return None
    return support


def check_allowed(checks: Checks, design: UnitColumns, support: tuple[int, ...], tau: int, path: str) -> bool:
    """Check that a support has every forced column and satisfies the other restrictions; return the result.

    Parameters
    ----------
    design : UnitColumns
        Design of all columns that may be in a support.
    support : tuple of int
        Positions in `design.columns`.
    path : str
        Prefix of `support` in messages.
    """
    if design.allowed is not None:
        right = design.allowed.holds(support, tau)
        return checks.require(right, f"{path}support", "does not keep to the restrictions")
    lacking = [j for j in design.forced if j not in support]
    return checks.require(not lacking, f"{path}support", f"lacks {design.join_names(lacking)}, forced in")


def check_signs(checks: Checks, design: UnitColumns, support: tuple[int, ...], model: RidgeFit, path: str) -> bool:
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
    return checks.require(right, f"{path}support", "its fit has a coefficient of the wrong sign")


def check_fit(
    checks: Checks,
    design: UnitColumns,
    said: Record | PathRow | CommonRecord,
    row: Refit | PathRow | CommonRecord,
    path: str = "",
) -> RidgeFit | None:
    """Refit a support to all rows, and compare names, coefficients and intercept.

    Parameters
    ----------
    design : UnitColumns
        Design of all varying columns.
    said : Record, PathRow or CommonRecord
        Part of the record with the model; its objective is in `row`.
    row : Refit, PathRow or CommonRecord
        Part of the record with gamma and tau.
    path : str
        Prefix of the fields in messages.

    Returns
    -------
    RidgeFit or None
        The refit; None if the support is invalid.
    """
    dataset, adjusted = design.dataset, [design.dataset.names[j] for j in design.free]
    exact = design.allowed is None  # with other restrictions a smaller support may be optimal
    support = checked_support(
        checks, said.support, design.index, design.most_columns(row.tau), f"{path}support", exact, adjusted=adjusted
    )
    if support is None or not check_allowed(checks, design, support, row.tau, path):
        return None
    model = design.refit(support, row.gamma, None)
    check_signs(checks, design, support, model, path)
    names, columns = [design.names[j] for j in support], dataset.X[:, design.columns[list(support)]]
    if not checks.require(set(said.coefficients) == set(names), f"{path}coefficients", "are not those of the support"):
        return model
    target = size_of_target(dataset, design.intercept)
    spread = np.abs(columns - model.x_center).max(axis=0, initial=0.0)
    slack = float(np.max(np.abs(model.beta) * spread, initial=0.0)) * CROSSING_RTOL + 1e-12 * target
    slack += design.target_noise
    moved = design.noise_effects(support, row.gamma)
    for name, value, reach, more in zip(names, model.beta.tolist(), spread.tolist(), moved.tolist(), strict=True):
        checks.close(f"{path}coefficients.{name}", said.coefficients[name], value, slack / reach + more)
    beta = np.array([said.coefficients[name] for name in names])
    # with the coefficients of the record: their error is tolerated above, and must not be multiplied by the centre
    # again
    expected = float(model.y_center - model.x_center @ beta)
    offset = float(np.abs(model.x_center) @ np.abs(beta)) + abs(model.y_center)
    # means that are 0 up to the rounding of their sums
    rounded = 1e-15 * (target + float(spread @ np.abs(beta))) + design.target_noise
    checks.close(f"{path}intercept", said.intercept, expected, 1e-13 * offset + 1e-12 * slack + rounded)
    return model


def check_objective(
    checks: Checks, design: UnitColumns, row: Refit | PathRow, model: RidgeFit, gap: float, path: str
) -> None:
    """Compare the objective with its refit, with its bounds, and `proved` with the width of the bounds.

    Parameters
    ----------
    model : RidgeFit
        Refit of the support.
    gap : float
        Requested relative gap.
    path : str
        Prefix of the fields in messages.
    """
    slack = design.objective_slack(model.objective)
    checks.close(f"{path}objective", row.objective, model.objective, slack)
    checks.require_at_most(f"{path}lower", row.lower, model.objective, "the objective", slack)
    checks.require_at_least(f"{path}upper", row.upper, model.objective, "the objective", slack)
    width = max(gap, PROVED_RTOL) * row.upper + 2.0 * slack
    closed = math.isfinite(row.upper) and row.upper - row.lower <= width
    checks.require(closed or not row.proved, f"{path}proved", "upper - lower is wider than a proof leaves it")
    wide = row.upper == math.inf or row.upper - row.lower > max(gap, PROVED_RTOL) * row.upper * (1.0 - 1e-9)
    checks.require(row.proved or wide, f"{path}proved", "is false though upper - lower is within the requested gap")


def check_neighbours(checks: Checks, design: UnitColumns, row: Refit | PathRow, model: RidgeFit, path: str) -> bool:
    """Compare the lower bound of a full-data fit with the best support one column away, if all are allowed.

    Parameters
    ----------
    design : UnitColumns
        Design of all varying columns.
    model : RidgeFit
        Refit of the support.
    path : str
        Prefix of the fields in messages.
    """
    if design.allowed is not None:  # a neighbour may violate the restrictions
        return False
    support = tuple(np.searchsorted(design.columns, model.support).tolist())
    better = Exchanges(design, row.gamma).best(np.zeros(0, dtype=np.int64), support)
    if better is None:
        return True
    value = design.refit(better, row.gamma, None).objective
    slack = design.objective_slack(value)
    checks.require_at_most(
        f"{path}lower", row.lower, value, f"{value!r}, reached by {design.join_names(better)}", slack
    )
    return True


def check_optimum(checks: Checks, design: UnitColumns, row: Refit | PathRow, path: str) -> None:
    """Compare the bounds of a full-data fit with the enumerated minimum.

    Parameters
    ----------
    design : UnitColumns
        Design of all varying columns.
    path : str
        Prefix of the fields in messages.
    """
    least = least_objective(design, row.gamma, row.tau)
    slack = design.objective_slack(least)
    checks.require_at_most(f"{path}lower", row.lower, least, f"the true minimum {least!r}", slack)
    checks.require_at_least(f"{path}upper", row.upper, least, f"the true minimum {least!r}", slack)
