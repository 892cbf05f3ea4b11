"""Side constraints: what a user may demand of the chosen support and its coefficients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.data.standard import StandardData
from sparsecv_mio.errors import BadInput

SIGNS = [0.0, math.inf], [-math.inf, 0.0]  # boxes that only hold a sign


@dataclass(frozen=True)
class SideConstraints:
    """Constraints beside `|S| <= tau`, on the columns 0..q-1 of a problem, in standard coordinates.

    Attributes
    ----------
    forced_in, forced_out : tuple of int
        Columns in every, or in no, support.
    together : tuple of tuples of int
        Groups whose columns are chosen all or none; each of them counts.
    factors : tuple of tuples of int
        Such groups that do not overlap and count as one column each; `at_most` and `parents` name their first columns.
    at_most : tuple of (int, tuple of int)
        `(k, columns)`: at most k of these columns.
    box : tuple of (int, float, float)
        `(j, lo, hi)`: `lo <= b_j <= hi` whenever j is chosen; a column that is not chosen is zero, inside its box or
        not. `-inf` / `inf` for an open side, so a sign is a box.

    Raises
    ------
    BadInput
        For a box without a number in it, or a negative k.

    Notes
    -----
    With side constraints a smaller support may be the better one, so `|S| <= tau` stays an inequality (theory
    section 0).

    Examples
    --------
    >>> SideConstraints(forced_in=(0,), box=((1, 0.0, float("inf")),)).on_coefficients
    True
    """

    forced_in: tuple[int, ...] = ()
    forced_out: tuple[int, ...] = ()
    together: tuple[tuple[int, ...], ...] = ()
    at_most: tuple[tuple[int, tuple[int, ...]], ...] = ()
    box: tuple[tuple[int, float, float], ...] = ()
    parents: tuple[tuple[int, tuple[int, ...], bool], ...] = ()
    factors: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        for j, lo, hi in self.box:
            if not (lo <= hi and lo < math.inf and hi > -math.inf):
                raise BadInput(f"the box of column {j} holds no number: {lo} to {hi}")
        for k, columns in self.at_most:
            if k < 0:
                raise BadInput(f"at most {k} of {len(columns)} columns: the count must not be negative")

    @property
    def on_coefficients(self) -> bool:
        """Whether any coefficient is bounded."""
        return bool(self.box)

    @property
    def needs(self) -> frozenset[str]:
        """Names of the kinds in use, as backends declare them."""
        kinds = {
            "force": self.forced_in or self.forced_out,
            "together": self.together,
            "count": self.factors,
            "at_most": self.at_most,
            "parents": self.parents,
            "sign": self.box,
            "box": [bounds for _, *bounds in self.box if bounds not in SIGNS],
        }
        return frozenset(name for name, used in kinds.items() if used)

    @property
    def rows(self) -> tuple[tuple[tuple[int, tuple[int, ...]], ...], tuple[tuple[int, int], ...]]:
        """`(at_most, equal)`: the rows on z that a model adds; a group becomes pairs of equal columns."""
        pairs = tuple((group[0], j) for group in (*self.together, *self.factors) for j in group[1:])
        return self.at_most, pairs

    @property
    def parent_rows(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """`(j, columns)`: `z_j <= sum of z over the columns`; j with all of its parents becomes a row for each."""
        rows: list[tuple[int, tuple[int, ...]]] = []
        for j, columns, every in self.parents:
            rows += [(j, (i,)) for i in columns] if every else [(j, columns)]
        return tuple(rows)

    def count(self, support: Iterable[int]) -> int:
        """Return how many features a support counts as."""
        chosen = set(support)
        return len(chosen) - sum(max(len(chosen.intersection(factor)) - 1, 0) for factor in self.factors)

    def counted(self, q: int) -> FloatArray:
        """Return (q,) what each column counts beside the others of its factor: the first one 1, the others 0."""
        counts = np.ones(q)
        counts[[j for factor in self.factors for j in factor[1:]]] = 0.0
        return counts

    def columns(self, tau: int) -> int:
        """Return how many columns a support of tau features has at most."""
        more = sorted((len(factor) - 1 for factor in self.factors), reverse=True)
        return tau + sum(more[:tau])

    def fixed(self, q: int) -> tuple[FloatArray, FloatArray]:
        """Return (q,) bounds of the indicators: 1, 1 for a column forced in, 0, 0 for one forced out, else 0, 1."""
        low, high = np.zeros(q), np.ones(q)
        low[list(self.forced_in)] = 1.0
        high[list(self.forced_out)] = 0.0
        return low, high

    def interval(self, q: int) -> tuple[FloatArray, FloatArray]:
        """Return (q,) arrays lo, hi: the box of every column, intersected where a column has several."""
        lo, hi = np.full(q, -np.inf), np.full(q, np.inf)
        for j, a, b in self.box:
            lo[j], hi[j] = max(lo[j], a), min(hi[j], b)
        if np.any(lo > hi):
            j = int(np.argmax(lo > hi))
            raise BadInput(f"the boxes of column {j} do not meet")
        return lo, hi

    def boxes(self, q: int) -> tuple[FloatArray, FloatArray] | None:
        """Return `interval(q)`, None where no coefficient is bounded."""
        return self.interval(q) if self.box else None

    def allows(self, support: Iterable[int], tau: int) -> bool:
        """Whether a support meets all constraints, the boxes aside."""
        chosen = set(support)
        return (
            self.count(chosen) <= tau
            and chosen.issuperset(self.forced_in)
            and chosen.isdisjoint(self.forced_out)
            and all(chosen.issuperset(group) or chosen.isdisjoint(group) for group in (*self.together, *self.factors))
            and all(len(chosen.intersection(columns)) <= k for k, columns in self.at_most)
            and all(
                chosen.issuperset(columns) if every else not chosen.isdisjoint(columns)
                for j, columns, every in self.parents
                if j in chosen
            )
        )


FREE = SideConstraints()


def side_constraints(
    data: StandardData,
    *,
    force_in: Sequence[str] = (),
    force_out: Sequence[str] = (),
    together: Sequence[Sequence[str]] = (),
    at_most: Sequence[tuple[int, Sequence[str]]] = (),
    box: Mapping[str, tuple[float, float]] | None = None,
) -> SideConstraints:
    """Translate constraints on named features, with coefficients in the units of the file.

    Parameters
    ----------
    data : StandardData
        Its `divisor` and `y_unit` turn a coefficient b of the file into `b * divisor_j / y_unit`.
    force_in, force_out : sequences of str
        Features in every, or in no, support.
    together : sequence of sequences of str
        Groups that are chosen all or none.
    at_most : sequence of (int, sequence of str)
        At most so many of these features.
    box : mapping of str to (float, float), optional
        Bounds of the coefficient of a chosen feature.

    Returns
    -------
    SideConstraints

    Raises
    ------
    BadInput
        For an unknown name, or a constant column that is forced in or must be chosen with others.
    """
    position = {name: j for j, name in enumerate(data.names)}

    def find(name: str, what: str) -> int:
        if name in position:
            return position[name]
        if name in data.dataset.names:
            raise BadInput(f"{what}: feature {name!r} is constant and cannot take part")
        raise BadInput(f"{what}: there is no feature {name!r}")

    constant = set(data.dataset.names) - set(position)
    boxes = []
    for name, (lo, hi) in (box or {}).items():
        if lo > hi:
            raise BadInput(f"box: the bounds of {name!r} are reversed ({lo} > {hi})")
        j = find(name, "box")
        factor = float(data.divisor[j]) / data.y_unit
        boxes.append((j, lo * factor, hi * factor))
    return SideConstraints(
        forced_in=tuple(sorted({find(name, "force in") for name in force_in})),
        forced_out=tuple(sorted({find(name, "force out") for name in force_out if name not in constant})),
        together=tuple(tuple(find(name, "together") for name in group) for group in together if group),
        at_most=tuple((k, tuple(find(name, "at most") for name in names)) for k, names in at_most),
        box=tuple(boxes),
    )


def constraints_of(data: StandardData) -> SideConstraints:
    """Return the restrictions of the data in standard coordinates.

    A feature that does not vary, or is forced out, is in no support: nor is one that needs it as a parent.

    Parameters
    ----------
    data : StandardData
    """
    asked, position = data.restrictions, {name: j for j, name in enumerate(data.names)}
    factors = [[position[name] for name in group if name in position] for group in asked.count]
    for group, columns in zip(asked.count, factors, strict=True):  # its first name stands for it, varying or not
        position |= {name: columns[0] for name in group[:1] if columns}
    parents, never = [], []
    for rule in asked.hierarchy:
        if rule.feature not in position:
            continue
        above = tuple(position[name] for name in rule.parents if name in position)
        lacking = len(above) < len(rule.parents) if rule.every else not above
        if lacking:
            never.append(position[rule.feature])
        else:
            parents.append((position[rule.feature], above, rule.every))
    box = [(position[name], 0.0, math.inf) for name in asked.nonnegative if name in position]
    box += [(position[name], -math.inf, 0.0) for name in asked.nonpositive if name in position]
    return SideConstraints(
        forced_in=tuple(data.forced.tolist()),
        forced_out=tuple(sorted(set(never))),
        at_most=tuple((limit.count, tuple(position[name] for name in limit.features if name in position))
                      for limit in asked.at_most),
        box=tuple(box),
        parents=tuple(parents),
        factors=tuple(map(tuple, (columns for columns in factors if columns))),
    )  # fmt: skip
