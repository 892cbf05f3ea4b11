"""Trees: whether the leaves cover every support, and whether each leaf's bound holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .arithmetic import Arithmetic, Array
from .fits import Parts, Penalty, difference, fits, grown
from .moments import Moments
from .reading import Refused, integers, need, number, numbers, support

RIDGE = -1  # leaf: its own ridge fit; -2 - k: the k-th dual point
AT_ONCE = 1 << 21  # numbers of the matrices of leaves that are inverted together


@dataclass(frozen=True)
class Tree:
    """What a tree has proved: of size `first <= tau`, every support not `listed` has `f >= above[tau - first]`."""

    rows: int
    gamma: int
    first: int
    above: tuple[Any, ...]
    listed: dict[int, list[tuple[int, ...]]]
    leaves: int


@dataclass(frozen=True)
class Leaves:
    """Included columns, free columns (L, q), and the code of each leaf."""

    inside: Array
    free: Array
    code: Array


def read_leaves(nodes: list[int], q: int) -> Leaves:
    """Walk through a tree in preorder: at a split, first the part with the column, then the part without it."""
    inside, free, code = [], [], []
    open_nodes = [(np.zeros(q, dtype=bool), np.ones(q, dtype=bool))]
    for node in nodes:
        need(open_nodes, "a tree goes on after its last leaf")
        mine, left = open_nodes.pop()
        if node < 0:
            inside.append(mine)
            free.append(left)
            code.append(node)
            continue
        need(left[node], "a tree splits a column that is not free")
        rest, more = left.copy(), mine.copy()
        rest[node], more[node] = False, True
        open_nodes += [(mine, rest), (more, rest)]
    need(not open_nodes, "a tree ends before its last leaf")
    return Leaves(np.array(inside).reshape(-1, q), np.array(free).reshape(-1, q), np.array(code))


def check_tree(line: dict[str, Any], m: Moments, penalty: Penalty, kind: Arithmetic, units: Any) -> Tree:
    """Check every leaf of a tree.

    Parameters
    ----------
    line : dict
        The tree as it stands in the proof.
    m : Moments
        Of the rows it is about.
    penalty : Penalty
    kind : Floats or Fractions
    units : number, (q,) array
        What objectives of the proof are divided by; exponents by which points are multiplied.
    """
    q, (unit, shift) = len(m.c), units
    first, last = integers(line["taus"], 0, q + 1, "the sizes of a tree")
    need(first <= last, "the sizes of a tree are malformed")
    above = kind.of(numbers(line["above"], last - first + 1, "the thresholds of a tree")) / unit
    listed: dict[int, list[tuple[int, ...]]] = {tau: [] for tau in range(first, last + 1)}
    for values in line["listed"]:
        found = support(values, q)
        need(first <= len(found) <= last and found not in listed[len(found)], "a listed support is malformed")
        listed[len(found)].append(found)
    leaves = read_leaves(integers(line["nodes"], -(1 << 40), q, "the nodes of a tree"), q)
    points = [_point(point, shift) for point in line.get("points", [])]
    need(-2 - int(leaves.code.min()) < len(points), "a leaf names a dual point that is not there")
    bound = np.full((len(leaves.code), last - first + 1), None, dtype=object if kind.u == 0 else float)
    size = (leaves.inside | leaves.free).sum(1)
    for a in np.unique(size[leaves.code == RIDGE]).tolist():
        which = np.flatnonzero((leaves.code == RIDGE) & (size == a))
        step = max(1, AT_ONCE // max(1, a * a))
        for part in np.split(which, range(step, len(which), step)):
            bound[part] = _own_fits(m, penalty, leaves, part, (first, last), kind)
    which = np.flatnonzero(leaves.code != RIDGE)
    if len(which):
        bound[which] = _at_points(m, penalty, leaves, which, points, (first, last), kind)
    _compare(leaves, bound, above, first, listed)
    return Tree(-1, 0, first, tuple(above.tolist()), listed, len(leaves.code))


def _point(point: Any, shift: Array) -> Array:
    (exponent, columns, values), q = point, len(shift)
    integers([exponent], -1000, 1000, "a dual point")
    integers(columns, 0, q, "a dual point")
    integers(values, -(1 << 53), 1 << 53, "a dual point")
    need(len(columns) == len(values) == len(set(columns)), "a dual point is malformed")
    out = np.zeros(q)
    out[columns] = np.ldexp(np.array(values, dtype=float), exponent + shift[columns])
    need(all(abs(number(value, "a dual point")) < 1e100 for value in out.tolist()), "a dual point is too large")
    return out


def _own_fits(
    m: Moments, penalty: Penalty, leaves: Leaves, part: Array, taus: tuple[int, int], kind: Arithmetic
) -> Any:
    """Bound leaves of one size by the ridge fit on all their columns: its dual value, and the costs of dropping."""
    inside, every = leaves.inside[part], leaves.inside[part] | leaves.free[part]
    alike, back = np.unique(every, axis=0, return_inverse=True)  # leaves may share all their columns
    a = int(every[0].sum())
    sets = np.nonzero(alike)[1].reshape(len(alike), a)
    found = fits(Parts.of(m, penalty, sets), kind)
    back = back.reshape(-1)
    chosen = sets[back]
    mine = np.take_along_axis(inside, chosen, 1)
    dual = _dual(found.base[back], found.slopes[back], mine, taus, kind)
    cost = np.sort(np.where(mine, kind.of(np.array([1e30]))[0], found.cost[back]), axis=1)
    out = dual
    for t, tau in enumerate(range(taus[0], taus[1] + 1)):
        if tau < a:
            by_cost = found.lower[back] + cost[:, a - tau - 1]
            by_cost = by_cost - 4 * kind.u * abs(by_cost)
            out[:, t] = np.where(by_cost > out[:, t], by_cost, out[:, t])
        elif tau == a:
            out[:, t] = found.lower[back]
    return out


def _at_points(
    m: Moments, penalty: Penalty, leaves: Leaves, part: Array, points: list[Array], taus: tuple[int, int],
    kind: Arithmetic,
) -> Any:  # fmt: skip
    """Bound leaves by the dual value at stored points."""
    used, back = np.unique(-2 - leaves.code[part], return_inverse=True)
    b, q, u = kind.of(np.array([points[k] for k in used])), len(m.c), kind.u
    s, r = abs(b).sum(1), m.error + 2 * (q + 6) * u
    Qb = kind.product(b, m.Q.T)
    g = abs(m.c - Qb) + (r * (1 + s))[:, None]
    slopes = grown(g**2 / (penalty.values * (1 - penalty.error)) * (1 + 8 * u), kind)
    base = m.yy - (b * Qb).sum(1) - r * (1 + s) ** 2
    inside, free = leaves.inside[part], leaves.free[part]
    weighed = np.where(inside | free, slopes[back.reshape(-1)], 0 * slopes[:1, :1])
    return _dual(base[back.reshape(-1)], weighed, inside, taus, kind)


def _dual(base: Array, slopes: Array, mine: Array, taus: tuple[int, int], kind: Arithmetic) -> Array:
    """Return base less the slopes inside and, for each tau, the largest of the others up to tau in all."""
    count = mine.sum(1)
    own = np.where(mine, slopes, 0 * slopes).sum(1)
    rest = -np.sort(-np.where(mine, 0 * slopes, slopes), axis=1)
    sums = np.concatenate([(0 * own)[:, None], np.cumsum(rest, axis=1)], axis=1)
    columns = []
    for tau in range(taus[0], taus[1] + 1):
        more = np.clip(tau - count, 0, slopes.shape[1])
        columns.append(difference(base, own + np.take_along_axis(sums, more[:, None], 1)[:, 0], kind))
    return np.stack(columns, axis=1)


def _compare(leaves: Leaves, bound: Array, above: Array, first: int, listed: dict[int, list[tuple[int, ...]]]) -> None:
    """Refuse where a leaf of some size is neither bounded nor a single support that is listed."""
    least, most = leaves.inside.sum(1)[:, None], (leaves.inside | leaves.free).sum(1)[:, None]
    sizes = np.arange(first, first + len(above))[None, :]
    open_leaves = (sizes >= least) & (sizes <= most) & ~(bound >= above).astype(bool)
    known = {tau: set(found) for tau, found in listed.items()}
    for i, t in np.argwhere(open_leaves).tolist():
        tau = first + t
        columns = leaves.inside[i] | leaves.free[i] if tau == most[i, 0] else leaves.inside[i]
        if tau not in (least[i, 0], most[i, 0]) or tuple(np.flatnonzero(columns).tolist()) not in known[tau]:
            raise Refused(f"leaf {i + 1} is not bounded by the threshold of size {tau}, nor a listed support")
