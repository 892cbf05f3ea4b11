"""The truth under restrictions by trying every support; and restrictions drawn at random."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from reference import Enumeration, Optima

from sparsecv_mio.model_space import AtMost, Parents, Restrictions

NO_COLUMN = -1


def allowed(chosen: set[str], asked: Restrictions) -> bool:
    """Whether a model may consist of these features, signs aside."""
    return (
        chosen.issuperset(asked.force_in)
        and chosen.isdisjoint(asked.force_out)
        and all(len(chosen.intersection(group.features)) <= group.count for group in asked.at_most)
        and all(
            chosen.issuperset(one.parents) if one.every else not chosen.isdisjoint(one.parents)
            for one in asked.hierarchy
            if one.feature in chosen
        )
    )


class RestrictedEnumeration(Enumeration):
    """As `Enumeration`, of the supports up to a size that keep to restrictions.

    With signs held, a fit is the ridge fit of its coefficients off zero: every support whose ridge fit has the signs
    counts, where an allowed support holds it and beside it only features that a sign does hold at zero.
    """

    names: tuple[str, ...]
    asked: Restrictions

    def optima(self, gamma: float, tau: int) -> Optima:
        """Every support of up to tau columns."""
        q = len(self.columns)
        known = [self.names[j] for j in self.columns.tolist()]
        plus, minus = (np.isin(known, some) for some in (self.asked.nonnegative, self.asked.nonpositive))
        sets = [set(some) for size in range(min(tau, q) + 1) for some in combinations(range(q), size)]
        family = [some for some in sets if allowed({known[j] for j in some}, self.asked)]
        parts = [super(RestrictedEnumeration, self).optima(gamma, size) for size in range(min(tau, q) + 1)]
        held = set(np.flatnonzero(plus | minus).tolist())
        place = {int(j): i for i, j in enumerate(self.columns)}
        supports, keep, start = [], [], 0
        for part in parts:
            for row, sign in zip(part.supports, part.sign, strict=True):
                at = [place[int(j)] for j in row]
                right = np.where(plus[at], sign > 0, np.where(minus[at], sign < 0, True)).all()
                slope = None if set(at) in family else self._slopes(gamma, at) * np.where(plus, 1.0, -1.0)
                stays = {j for j in held if slope is not None and slope[j] <= 1e-9}
                if right and any(set(at) <= some and some - set(at) <= stays for some in family):
                    keep.append(start)
                    supports.append(np.pad(np.sort(row), (0, tau - len(row)), constant_values=NO_COLUMN))
                start += 1
        joined = {
            name: np.concatenate([getattr(part, name) for part in parts])[keep]
            for name in ("value", "value_error", "held_out", "held_out_error")
        }
        table = np.array(supports, dtype=np.int64).reshape(len(keep), tau)
        return Optima(supports=table, scale=parts[0].scale, sign=np.zeros((0, 0), dtype=np.int64), **joined)

    def _slopes(self, gamma: float, at: list[int]) -> np.ndarray:
        """How much adding to each coefficient would lower f of a fit, over the lengths of column and target."""
        A = np.vstack([self.V, np.diag(np.sqrt(gamma / 2.0) * self.root)])
        b = np.append(self.r, np.zeros(A.shape[1]))
        rest = b - A[:, at] @ np.linalg.lstsq(A[:, at], b, rcond=None)[0]
        return np.asarray(rest @ A / (np.linalg.norm(A, axis=0) * np.linalg.norm(b) + 1e-300))

    def value_of(self, support: np.ndarray, found: Optima) -> tuple[float, float]:
        """f of one of the supports and its rounding error; inf where it is none of them."""
        wanted = np.pad(np.sort(support), (0, found.supports.shape[1] - len(support)), constant_values=NO_COLUMN)
        row = np.flatnonzero((found.supports == wanted).all(axis=1))
        return (float(found.value[row[0]]), float(found.value_error[row[0]])) if len(row) else (np.inf, 0.0)


KINDS = ("at_most", "hierarchy", "sign", "all")


def random_restrictions(rng: np.random.Generator, names: tuple[str, ...], kind: str) -> Restrictions:
    """Restrictions of one kind, or of all with forced columns."""

    def some(least: int, most: int) -> tuple[str, ...]:
        return tuple(rng.permutation(names)[: int(rng.integers(least, max(most, least) + 1))].tolist())

    p, asked = len(names), {}
    if kind in ("at_most", "all"):
        asked["at_most"] = tuple(AtMost(int(rng.integers(0, 3)), some(1, p)) for _ in range(rng.integers(1, 4)))
    if kind in ("hierarchy", "all") and p > 1:
        drawn = [some(2, min(4, p)) for _ in range(rng.integers(1, 4))]
        asked["hierarchy"] = tuple(Parents(one[0], one[1:], bool(rng.integers(2))) for one in drawn)
    if kind in ("sign", "all"):
        sign = np.full(p, 1) if rng.random() < 0.3 else rng.integers(-1, 2, p)
        asked["nonnegative"] = tuple(np.array(names)[sign > 0].tolist())
        asked["nonpositive"] = tuple(np.array(names)[sign < 0].tolist())
    if kind == "all" and p > 2:
        asked["force_in"], asked["force_out"] = (names[int(rng.integers(p - 1))],), (names[-1],)
    return Restrictions(**asked)
