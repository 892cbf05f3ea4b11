"""Columns that hardly move beside their size, or moved by one cell alone: what takes the digits of sums of squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from exact import ExactProblem

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.search.api import cross_validate

END_RTOL = 2e-9  # of an end: twice what ties and records are told by


@dataclass(frozen=True)
class ThinCase:
    """A data set with its folds, and what is asked."""

    data: Dataset
    folds: FoldPlan
    gammas: list[float]
    taus: list[int]
    words: dict[str, Any]

    def solved(self) -> Record:
        return cross_validate(self.data, self.folds, gammas=self.gammas, taus=self.taus, threads=1, **self.words)

    @property
    def noise(self) -> float:
        """What ends may be off where a fit is perfect, of which nothing is known relatively."""
        return END_RTOL * 1e-6 * float(np.ptp(self.data.y)) ** 2

    def exact(self, all_rows: bool = False) -> ExactProblem:
        """The folds in fractions, or one that trains on all rows."""
        how, limits = (self.words["scale"], self.words["intercept"]), self.words["restrictions"]
        columns = standardize(self.data, *how, limits).columns.tolist()
        forced = [self.data.names.index(name) for name in limits.force_in]
        return ExactProblem.from_data(self.data, None if all_rows else self.folds, how, columns, forced)


def _column(rng: np.random.Generator, n: int, like: np.ndarray) -> np.ndarray:
    noise, kind = rng.normal(size=n), rng.integers(0, 9)
    if kind == 0:  # ones with noise
        return rng.choice([1.0, 5.0, 1000.0]) * (1.0 + 10.0 ** rng.uniform(-16, -6) * noise)
    if kind == 1:  # an offset, the spread far below it
        return 10.0 ** rng.uniform(0, 12) * rng.choice([-1.0, 1.0]) + 10.0 ** rng.uniform(-4, 1) * noise
    if kind in (2, 3):  # a fill value
        noise[rng.integers(0, n, size=rng.integers(1, 3))] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.integers(6, 31)
        return noise
    if kind == 4:  # two clusters far apart, each with a spread of its own
        return np.where(np.arange(n) < n // 2, 10.0 ** rng.uniform(3, 14), 0.0) + noise
    if kind == 5:  # a copy except for a little
        return like * rng.choice([1.0, -2.0, 3.0]) + 10.0 ** rng.uniform(-16, -6) * np.abs(like).max() * noise
    if kind == 6:  # a dummy of one row
        return (np.arange(n) == rng.integers(0, n)) * 10.0 ** rng.uniform(-3, 3)
    return noise


def thin_case(seed: int) -> ThinCase:
    """Draw a small problem with such columns; may raise `BadInput`."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(6, 14)), int(rng.integers(1, 5))
    if rng.random() < 0.1:  # leave-one-out of more than 24 folds shares its trees
        n, p = int(rng.integers(25, 31)), int(rng.integers(1, 4))
    columns = [rng.normal(size=n)]
    while len(columns) < p + 1:
        columns.append(_column(rng, n, columns[-1]))
    X = np.column_stack(columns[1:])
    if rng.random() < 0.2 and p > 1:  # one row is missing in two columns, by the same fill value
        X[rng.integers(0, n), :2] = 10.0 ** rng.integers(6, 31)
    y = np.column_stack(columns[:-1]) @ rng.normal(size=p) if rng.random() < 0.3 else rng.normal(size=n)
    if rng.random() < 0.2:
        y = _column(rng, n, y)
    weights = 10.0 ** rng.uniform(-2, 2, size=n) if rng.random() < 0.25 else None
    data = Dataset.from_arrays(X, y)
    data = data if weights is None else weighted_rows(data, weights, "w")
    spec = str(rng.choice(["loo", "2", "3", "4"] if n < 24 else ["loo"]))
    plan = make_folds(spec, data, seed=int(rng.integers(0, 99)))
    force = (data.names[0],) if rng.random() < 0.15 else ()
    words = {
        "scale": str(rng.choice(["none", "length", "variance"])),
        "intercept": str(rng.choice(["fold", "fold", "none", "global"])),
        "gap": float(rng.choice([0.0, 1e-4])),
        "restrictions": Restrictions(force_in=force),
    }
    gammas = sorted({float(10.0 ** rng.uniform(-8, 2)) for _ in range(int(rng.integers(1, 3)))})
    return ThinCase(data, plan, gammas, list(range(max(len(force), 1), p + 1)), words)


def false_ends(case: ThinCase, record: Record) -> list[str]:
    """Name the ends of pairs that the exact CV errors contradict, and what is said of the least."""
    exact, wrong, noise = case.exact(), [], case.noise
    values = {(row.gamma, row.tau): exact.cv_error(row.gamma, row.tau) for row in record.table}
    for row in record.table:
        low, high = (float(value) for value in values[row.gamma, row.tau])
        if row.lower > high * (1.0 + END_RTOL) + noise or row.upper < low * (1.0 - END_RTOL) - noise:
            wrong.append(f"gamma {row.gamma!r}, tau {row.tau}: [{row.lower!r}, {row.upper!r}] without {low!r}")
    least, proved = float(min(high for _, high in values.values())), record.certificate
    if proved.lower > least * (1.0 + END_RTOL) + noise or proved.upper < least * (1.0 - END_RTOL) - noise:
        wrong.append(f"least: [{proved.lower!r}, {proved.upper!r}] without {least!r}")
    return wrong
