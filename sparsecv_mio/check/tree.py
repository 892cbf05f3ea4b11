"""Trees: whether the leaves cover every support, and whether each leaf's bound holds."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .arithmetic import Arithmetic, Array
from .fits import Penalty, fits
from .moments import Moments
from .reading import integers, need, numbers, support

RIDGE = -1  # leaf: its own ridge fit; -2 - k: the k-th dual point
AT_ONCE = 1 << 16  # numbers in the matrices that are worked on together: they stay near the processor


class Tree(NamedTuple):
    """What a tree has proved: of size `first <= tau`, every support not `listed` has `f >= above[tau - first]`."""

    first: int
    above: Array
    listed: dict[int, list[tuple[int, ...]]]
    leaves: int
    rows: int = -1
    gamma: int = 0


def blocks(which: Array, size: int) -> Iterator[Array]:
    """Yield some numbers in parts, each of `size` numbers of memory or a few more."""
    step = max(1, AT_ONCE // max(1, size))
    return iter(np.split(which, range(step, len(which), step))) if len(which) else iter(())


def read_leaves(nodes: list[int], q: int) -> list[tuple[int, int, int]]:
    """Return of each leaf the included columns and all columns left, as bits, and its number in the tree.

    A tree stands in preorder: at a split comes first the part with the column, then the part without it.
    """
    leaves, open_nodes = list[tuple[int, int, int]](), [(0, (1 << q) - 1)]
    for node in nodes:
        need(open_nodes, "a tree goes on after its last leaf")
        mine, left = open_nodes.pop()
        if node < 0:
            leaves.append((mine, left, node))
        else:
            need(left & ~mine & 1 << node, "a tree splits a column that is not free")
            open_nodes += [(mine, left ^ 1 << node), (mine | 1 << node, left)]
    need(not open_nodes, "a tree ends before its last leaf")
    return leaves


def _columns(bits: tuple[int, ...], q: int) -> Array:
    width = (q + 7) // 8
    packed = np.frombuffer(b"".join(one.to_bytes(width, "little") for one in bits), dtype=np.uint8)
    return np.unpackbits(packed.reshape(len(bits), width), axis=1, count=q, bitorder="little").astype(bool)


def check_tree(line: dict[str, Any], m: Moments, penalty: Penalty, kind: Arithmetic, units: Any) -> Tree:
    """Check every leaf of a tree.

    Parameters
    ----------
    line : dict
        The tree as it stands in the proof.
    m : Moments
        Of the rows it is about.
    penalty : (q,) array, number
        What multiplies `b_j^2`, and its relative error.
    kind : Floats or Fractions
    units : number, (q,) array
        What objectives of the proof are divided by; exponents by which points are multiplied.
    """
    q, (first, last) = len(m.c), integers(line["taus"], 0, len(m.c) + 1, "the sizes of a tree")
    need(first <= last, "the sizes of a tree are malformed")
    sizes = np.arange(first, last + 1)
    above = kind.of(numbers(line["above"], len(sizes), "the thresholds of a tree")) / units[0]
    found = [support(values, q) for values in line["listed"]]
    listed = {tau: [one for one in found if len(one) == tau] for tau in sizes.tolist()}
    known = {sum(1 << j for j in one) for one in found}
    need(len(known) == sum(map(len, listed.values())) == len(found), "a support is listed twice, or of another size")
    points = [_point(point, units[1]) for point in line.get("points", [])]
    base, slopes = _at_points(m, penalty, kind.of(np.array(points).reshape(len(points), q)), kind)
    nodes = integers(line["nodes"], -1 - len(points), q, "the nodes of a tree")
    least, most, named = zip(*read_leaves(nodes, q), strict=True)
    inside, every, codes = _columns(least, q), _columns(most, q), np.array(named)
    low, high = inside.sum(1)[:, None], every.sum(1)[:, None]
    asked = (sizes >= low) & (sizes <= high)
    for bits, size in ((least, low), (most, high)):
        asked &= ~((sizes == size) & np.array([one in known for one in bits])[:, None])
    alike = np.where(codes == RIDGE, high[:, 0], -1)  # leaves that are worked on together
    for a in np.unique(alike[asked.any(1)]).tolist():
        for part in blocks(np.flatnonzero((alike == a) & asked.any(1)), a * a if a >= 0 else q):
            leaves, at = (inside[part], every[part]), -2 - codes[part]
            own = a >= 0
            bound = (
                _own_fits(m, penalty, leaves, sizes, kind) if own else _dual(base[at], slopes[at], leaves, sizes, kind)
            )
            for i, t in np.argwhere(asked[part] & ~(bound >= above).astype(bool)).tolist():
                need(False, f"leaf {part[i] + 1} is not bounded by the threshold of size {sizes[t]}, nor listed")
    return Tree(first, above, listed, len(codes))


def _point(point: Any, shift: Array) -> Array:
    (exponent, columns, values), out = point, np.zeros(len(shift))
    integers([exponent], -1000, 1000, "a dual point")
    integers(columns, 0, len(shift), "a dual point")
    integers(values, -(1 << 53), 1 << 53, "a dual point")
    need(len(columns) == len(values) == len(set(columns)), "a dual point is malformed")
    out[columns] = np.ldexp(np.array(values, dtype=float), exponent + shift[columns])
    need(np.abs(out).max(initial=0.0) < 1e100, "a dual point is too large")
    return out


def _own_fits(m: Moments, penalty: Penalty, leaves: tuple[Array, Array], sizes: Array, kind: Arithmetic) -> Array:
    """Bound leaves of a columns by their ridge fits b: f and the m-th smallest cost, or f and m of `weight b^2`."""
    inside, every = leaves
    sets = np.nonzero(every)[1].reshape(len(every), -1)
    a, u, mine, found = sets.shape[1], kind.u, np.take_along_axis(inside, sets, 1), fits([m], penalty, sets, kind)
    least = np.maximum(abs(found.beta) - found.norm * found.excess[:, None] * (1 + 4 * u), 0 * found.beta)
    cost = -kind.above(-((least / found.norm) ** 2 * (1 - 8 * u)))
    ridge = penalty[0][sets] * least**2 * (1 - penalty[1]) * (1 - (a + 16) * u)
    by_cost, by_ridge = (np.sort(np.where(mine, np.inf, gain), axis=1) for gain in (cost, ridge))
    gain = np.concatenate([0 * found.lower[:, None], np.maximum(by_cost, np.cumsum(by_ridge, axis=1))], axis=1)
    bound = found.lower[:, None] + gain[:, np.clip(a - sizes, 0, a)]
    return bound - 4 * u * abs(bound)


def _at_points(m: Moments, penalty: Penalty, b: Array, kind: Arithmetic) -> tuple[Array, Array]:
    """Return `yy - b'Q b` of points b (P, q), not above, and `g^2 / weight` (P, q), not below."""
    q, u, s = len(m.c), kind.u, abs(b).sum(1)
    r = m.error + 2 * (q + 6) * u
    Qb = kind.product(b, m.Q.T)
    slopes = (abs(m.c - Qb) + (r * (1 + s))[:, None]) ** 2 / (penalty[0] * (1 - penalty[1])) * (1 + (q + 24) * u)
    return m.yy - kind.inner(b, Qb) - r * (1 + s) ** 2, slopes


def _dual(base: Array, slopes: Array, leaves: tuple[Array, Array], sizes: Array, kind: Arithmetic) -> Array:
    """Bound leaves by the dual value at a point of each."""
    (inside, every), none = leaves, 0 * slopes
    own = np.where(inside, slopes, none).sum(1)[:, None]
    others = -np.sort(-np.where(every & ~inside, slopes, none), axis=1)
    lost = own + np.concatenate([0 * own, np.cumsum(others, axis=1)], axis=1)
    lost = np.take_along_axis(lost, np.clip(sizes - inside.sum(1)[:, None], 0, slopes.shape[1]), 1)
    return base[:, None] - lost - 8 * kind.u * (abs(base)[:, None] + lost)
