"""Lower bounds of held-out errors from the rows that a fold leaves out, added to its training rows with more weight.

With f the training objective of a fold, h the squared error on its other rows and any t > 0 (docs/theory/bounds.md 10)

    h(b*) >= (V_t - u) / t        for every V_t <= min over b of f(b) + t h(b), at most tau nonzero, and u >= f(b*).

At t = 1 it is the training-loss bound, up to the intercept: one V serves every fold, and what V falls short counts
once for each of them. With t = 6 it counts a sixth, while h(b*) is less than its least at the weight t by no more than
those rows can be fitted beside the others. So where relaxations are far from the optimum, as under small penalties, it
is much the better one.

V_t never rises with tau and is concave in gamma (:mod:`sparsecv_mio.bounds.closed_form`): relaxations at some pairs
bound the others too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import BoolArray, FloatArray, IntArray
from sparsecv_mio.bounds.closed_form import ROWS_ROUNDING, implied_lower_bounds
from sparsecv_mio.problem.elimination import eliminated
from sparsecv_mio.problem.problem import SparseProblem
from sparsecv_mio.trees.listing import sharpened
from sparsecv_mio.trees.normal_form import normal_form, solve_root

WEIGHTS = 1.5, 3.0, 6.0, 12.0, 24.0
NEAR, STEPS = 0.005, 2_000  # accuracy of relaxations, of what is left to the level at which they end, and steps


class WantedPairs(NamedTuple):
    """Gammas (G,), ascending; sizes (T,), rising; the pairs that bounds are wanted of, (G, T)."""

    gammas: FloatArray
    taus: IntArray
    wanted: BoolArray


def held_out_lower_bounds(
    problem: SparseProblem,
    held_out: tuple[FloatArray, FloatArray, float],
    grid: WantedPairs,
    known: tuple[FloatArray, FloatArray],
    expired: Callable[[], bool],
) -> FloatArray:
    """Bound the held-out errors of a fold from below.

    Parameters
    ----------
    problem : SparseProblem
        Training rows, at any gamma.
    held_out : (q, q) array, (q,) array, float
        Moments Q, c and yy of the rows left out, about the training means.
    grid : WantedPairs
    known : (G, T) arrays
        u, which covers tied optima, inf where it is not known; and held-out errors of some support, which only say how
        well relaxations are to be solved.
    expired : callable
        True ends it with what is known by then.

    Returns
    -------
    (G, T) array
        0 where nothing is known.

    Notes
    -----
    O(q^3) for each weight and gamma, and a relaxation for each pair that is wanted.
    """
    Q, c, yy = held_out
    values, errors = known
    found = np.zeros(values.shape)
    for t in WEIGHTS:
        weighted = replace(
            problem, Q=problem.Q + t * Q, c=problem.c + t * c, yy=problem.yy + t * yy, kept={},
            own_squares=None if problem.own_squares is None else problem.own_squares + t * np.diag(Q),
        )  # fmt: skip
        lower = _relaxed(weighted, grid, values + t * errors, expired)
        implied = implied_lower_bounds(grid.gammas, lower) - ROWS_ROUNDING * weighted.yy
        usable = np.isfinite(values) & (implied > 0.0)
        found = np.maximum(found, np.where(usable, implied - np.where(usable, values, 0.0), 0.0) / t)
    return np.asarray(found)


def _relaxed(problem: SparseProblem, grid: WantedPairs, levels: FloatArray, expired: Callable[[], bool]) -> FloatArray:
    """(G, T): lower bounds of the optimum at some of the pairs that are wanted, 0 at the others."""
    lower = np.zeros(levels.shape)
    for g in np.flatnonzero(grid.wanted.any(axis=1)).tolist():
        part = eliminated(problem.with_gamma(float(grid.gammas[g])))
        form = sharpened(normal_form(part.problem))
        if not form.curved or not form.trusted:
            continue
        b = np.zeros(form.m)
        for t in np.flatnonzero(grid.wanted[g])[::-1].tolist():
            size, level = part.choice.size(int(grid.taus[t])), float(levels[g, t])
            if expired():
                return lower
            if 0 < size < form.m and np.isfinite(level):
                root = solve_root(form, size, form.raised(level), b, expired, near=NEAR, steps=STEPS)
                b = root.b
                lower[g, t] = max(min(root.dual, level) - (form.raised(level) - level), 0.0)
    return lower
