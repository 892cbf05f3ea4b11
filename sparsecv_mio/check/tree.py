"""Trees: whether the leaves cover every support, and whether each leaf's bound holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arithmetic import Arithmetic, Array
from .fits import Penalty, costs, fits
from .moments import Moments
from .reading import integers, need, number, numbers, support

RIDGE = -1  # leaf: its own ridge fit; -2 - k: the k-th dual point
AT_ONCE = 1 << 16  # numbers in the matrices that are worked on together: they stay near the processor


@dataclass(frozen=True)
class Tree:
    """What a tree has proved: of size `first <= tau`, every support not `listed` has `f >= above[tau - first]`."""

    rows: int
    gamma: int
    first: int
    above: Array
    listed: dict[int, list[tuple[int, ...]]]
    leaves: int


def blocks(which: Array, size: int) -> Iterator[Array]:
    """Yield some numbers in parts, each of `size` numbers of memory or a few more."""
    step = max(1, AT_ONCE // max(1, size))
    return iter(np.split(which, range(step, len(which), step))) if len(which) else iter(())


def read_leaves(nodes: list[int], q: int) -> tuple[list[int], list[int], list[int]]:
    """Return the included columns and all columns left of each leaf, as bits, and its number in the tree.

    A tree stands in preorder: at a split comes first the part with the column, then the part without it.
    """
    inside, every, code = list[int](), list[int](), list[int]()
    open_nodes = [(0, (1 << q) - 1)]
    for node in nodes:
        need(open_nodes, "a tree goes on after its last leaf")
        mine, left = open_nodes.pop()
        if node < 0:
            inside.append(mine)
            every.append(left)
            code.append(node)
            continue
        bit = 1 << node
        need(left & ~mine & bit, "a tree splits a column that is not free")
        open_nodes += [(mine, left ^ bit), (mine | bit, left)]
    need(not open_nodes, "a tree ends before its last leaf")
    return inside, every, code


def _columns(bits: list[int], q: int) -> Array:
    width = (q + 7) // 8
    packed = np.frombuffer(b"".join(one.to_bytes(width, "little") for one in bits), dtype=np.uint8)
    return np.unpackbits(packed.reshape(len(bits), width), axis=1, count=q, bitorder="little").astype(bool)


def check_tree(
    line: dict[str, Any], place: tuple[int, int], m: Moments, penalty: Penalty, kind: Arithmetic, units: Any
) -> Tree:
    """Check every leaf of a tree.

    Parameters
    ----------
    line : dict
        The tree as it stands in the proof.
    place : (int, int)
        Its rows and gamma, by index.
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
        need(first <= len(found) <= last, "a listed support has another size")
        listed[len(found)].append(found)
    known = {sum(1 << j for j in found) for several in listed.values() for found in several}
    need(len(known) == len(line["listed"]), "a listed support stands twice")
    least, most, code = read_leaves(integers(line["nodes"], -(1 << 40), q, "the nodes of a tree"), q)
    inside, every, codes = _columns(least, q), _columns(most, q), np.array(code)
    sizes = np.arange(first, last + 1)
    low, high = inside.sum(1)[:, None], every.sum(1)[:, None]
    single = [np.array([bits in known for bits in both])[:, None] for both in (least, most)]
    asked = (sizes >= low) & (sizes <= high) & ~((sizes == low) & single[0]) & ~((sizes == high) & single[1])
    points = [_point(point, shift) for point in line.get("points", [])]
    need(-2 - int(codes.min()) < len(points), "a leaf names a dual point that is not there")
    for which in _alike(asked.any(1), codes, high[:, 0], q):
        if codes[which[0]] == RIDGE:
            bound = _own_fits(m, penalty, inside[which], every[which], sizes, kind)
        else:
            named, back = np.unique(-2 - codes[which], return_inverse=True)
            b = kind.of(np.array([points[k] for k in named]))
            bound = _at_points(m, penalty, b, (back.reshape(-1), inside[which], every[which]), sizes, kind)
        for i, t in np.argwhere(asked[which] & ~(bound >= above).astype(bool)).tolist():
            need(False, f"leaf {which[i] + 1} is not bounded by the threshold of size {sizes[t]}, nor a listed support")
    return Tree(*place, first, above, listed, len(code))


def _alike(asked: Array, codes: Array, size: Array, q: int) -> Iterator[Array]:
    """Yield the leaves that need a bound, those of ridge fits by their size."""
    for a in np.unique(size[asked & (codes == RIDGE)]).tolist():
        yield from blocks(np.flatnonzero(asked & (codes == RIDGE) & (size == a)), a * a)
    yield from blocks(np.flatnonzero(asked & (codes != RIDGE)), q)


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


def _own_fits(m: Moments, penalty: Penalty, inside: Array, every: Array, sizes: Array, kind: Arithmetic) -> Array:
    """Bound leaves of a columns by their ridge fits b: f and the m-th smallest cost, or f and m of `weight b^2`."""
    sets = np.nonzero(every)[1].reshape(len(every), -1)
    a, mine = sets.shape[1], np.take_along_axis(inside, sets, 1)
    found = fits([m], penalty, (np.zeros(len(sets), dtype=np.int64), sets), kind)
    cost, square = costs(found, kind)
    ridge = penalty.values[sets] * square * (1 - penalty.error) * (1 - (a + 8) * kind.u)
    by_cost = np.sort(np.where(mine, np.inf, cost), axis=1)
    by_ridge = np.cumsum(np.sort(np.where(mine, np.inf, ridge), axis=1), axis=1)
    gain = np.concatenate([0 * found.lower[:, None], np.maximum(by_cost, by_ridge)], axis=1)
    bound = found.lower[:, None] + gain[:, np.clip(a - sizes, 0, a)]
    return bound - 4 * kind.u * abs(bound)


def _at_points(
    m: Moments, penalty: Penalty, b: Array, leaves: tuple[Array, Array, Array], sizes: Array, kind: Arithmetic
) -> Array:
    """Bound leaves by the dual value at stored points b: that of each leaf, its included and all of its columns."""
    which, inside, every = leaves
    q, u, s = len(m.c), kind.u, abs(b).sum(1)
    r = m.error + 2 * (q + 6) * u
    Qb = kind.product(b, m.Q.T)
    slopes = (abs(m.c - Qb) + (r * (1 + s))[:, None]) ** 2 / (penalty.values * (1 - penalty.error))
    slopes = (slopes * (1 + (q + 24) * u))[which]
    base = (m.yy - (b * Qb).sum(1) - r * (1 + s) ** 2)[which]
    own = np.where(inside, slopes, 0 * slopes).sum(1)
    others = -np.sort(-np.where(every & ~inside, slopes, 0 * slopes), axis=1)
    lost = own[:, None] + np.concatenate([0 * others[:, :1], np.cumsum(others, axis=1)], axis=1)
    more = np.clip(sizes - inside.sum(1)[:, None], 0, q)
    lost = np.take_along_axis(lost, more, 1)
    return base[:, None] - lost - 8 * u * (abs(base)[:, None] + lost)
