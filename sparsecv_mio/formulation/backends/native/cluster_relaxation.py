"""Relaxations of nodes that ask for clusters of columns, solved on the columns that matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.formulation.backends.native.normal_form import NormalForm
from sparsecv_mio.kernels.cluster_relaxation import Box, Choice, best_choice, descend, product, scores
from sparsecv_mio.kernels.forms import Form, Stop

OUT = -2  # in place of a cluster's number: the column is dropped
SLICE_WORK = 1e9  # multiplications between two looks at the clock
PART = (200, 1.5)  # columns that a relaxation works on at first: at least, and beside those with a weight
ROUNDS = 12  # in which such a set grows
WIDENED = 1e-9  # share by which an interval grows, for rounding



def box_of(form: NormalForm, ends: FloatArray) -> Box:
    """Return the box of coefficients within plus or minus `ends` (q,), in the units of the normal form."""
    high = ends[form.columns] / form.scale * (1.0 + WIDENED)
    return Box(-high, high)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """A point of a node's relaxation with its own dual value, weights and scores of all columns."""

    dual: float
    b: FloatArray
    z: FloatArray
    h: FloatArray


class ClusterRelaxation:
    """Relaxations of nodes on the columns that matter, with dual values over all of them."""

    def __init__(self, form: NormalForm, size: int, box: Box | None = None) -> None:
        everywhere = np.full(form.m, np.inf)
        self.form, self.size, self.box = form, size, box or Box(-everywhere, everywhere)

    def solve(
        self, cluster: IntArray, asked: int, start: FloatArray, stop: Stop, expired: Callable[[], bool]
    ) -> Relaxed:
        """Maximise the dual of a node.

        Parameters
        ----------
        cluster : (m,) array
            OUT, NO_CLUSTER or the number of a cluster.
        asked : int
            Clusters.
        start : (m,) array
            Warm start.
        stop : Stop
            `steps` counts those of one round.
        expired : callable
            True ends it with the best value so far.
        """
        active = np.flatnonzero(cluster != OUT)
        b = np.where(cluster == OUT, 0.0, start)
        found = self._value(active, cluster, asked, b, np.zeros_like(b))
        part = self._first_part(active, cluster, found)
        for _ in range(ROUNDS):
            if found.dual >= stop.bar or expired():
                break
            b, primal, z = self._on_part(part, cluster, asked, b, (stop, expired))
            value = self._value(active, cluster, asked, b, z)
            found = value if value.dual > found.dual else found
            if found.dual >= stop.bar or primal - value.dual <= stop.near * max(stop.bar - value.dual, 0.0):
                break
            more = self._missing(active, part, cluster, asked, value)
            if not len(more):
                break
            part = np.union1d(part, more)
        return found

    def _first_part(self, active: IntArray, cluster: IntArray, found: Relaxed) -> IntArray:
        least, beside = PART
        held = (found.b[active] != 0.0) | (cluster[active] >= 0)
        most = max(least, int(beside * np.count_nonzero(held)), 2 * self.size)
        if most >= 0.7 * len(active):
            return active
        order = np.argsort(-np.where(held, np.inf, found.h[active]), kind="stable")
        return np.sort(active[order[:most]])

    def _missing(self, active: IntArray, part: IntArray, cluster: IntArray, asked: int, value: Relaxed) -> IntArray:
        """Columns outside of a part that its relaxation should have had."""
        if len(part) == len(active) or asked == self.size:
            return active[:0]
        inside = np.zeros(self.form.m, dtype=bool)
        inside[part] = True
        choice = self._choice(part, cluster, asked)
        level = best_choice(np.ascontiguousarray(value.h[part]), choice).least
        outside = active[~inside[active]]
        outside = outside[value.h[outside] > level]
        return outside[np.argsort(-value.h[outside], kind="stable")[: max(len(part) // 2, 50)]]

    def _choice(self, columns: IntArray, cluster: IntArray, asked: int) -> Choice:
        return Choice(cluster[columns], asked, self.size)

    def _value(self, active: IntArray, cluster: IntArray, asked: int, b: FloatArray, z: FloatArray) -> Relaxed:
        """Evaluate the dual of a point over all columns of a node."""
        slope, h = np.empty(self.form.m), np.empty(self.form.m)
        quad = product(self.form.G, b, slope)
        scores(self.form.c - slope, self.box, h)
        total = best_choice(np.ascontiguousarray(h[active]), self._choice(active, cluster, asked)).total
        return Relaxed(float(self.form.yy - quad - total), b, z, h)

    def _on_part(
        self,
        part: IntArray,
        cluster: IntArray,
        asked: int,
        start: FloatArray,
        how: tuple[Stop, Callable[[], bool]],
    ) -> tuple[FloatArray, float, FloatArray]:
        form, (stop, expired) = self.form, how
        whole = len(part) == form.m
        G = form.G if whole else np.ascontiguousarray(form.G[np.ix_(part, part)])
        small = Form(G, np.ascontiguousarray(form.c[part]), form.yy, form.steepest)
        box = Box(self.box.lo[part], self.box.hi[part])
        choice = self._choice(part, cluster, asked)
        b, best_b, best_z = np.ascontiguousarray(start[part]), np.empty(len(part)), np.empty(len(part))
        steps = int(max(20, min(stop.steps, SLICE_WORK / len(part) ** 2)))
        primal, left = np.inf, stop.steps
        while left > 0:
            _, value, taken = descend(small, box, choice, stop._replace(steps=min(steps, left)), b, best_b, best_z)
            primal, left = min(primal, value), left - steps
            if taken < steps or expired():
                break
        point, weights = np.zeros(form.m), np.zeros(form.m)
        point[part], weights[part] = best_b, best_z
        return point, float(primal), weights
