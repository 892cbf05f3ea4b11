"""Functions that check the trees of a proof, and the statements of a proof about the folds of a pair (tau, gamma)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from .bounded_fits import (
    MOST_BLOCK_COLUMNS,
    BoundedFits,
    BoundedMoments,
    Penalty,
    ProvedBlocks,
    ScaledDesign,
    block_values,
    fits,
    leverage_bounds,
    proved_block_part,
    residual_bounds,
)
from .proof_file import Arithmetic, Array, Refused, integers, need, numbers, support

RIDGE = -1  # number of a leaf closed by its ridge fit; -2 - k refers to the k-th dual point
NUMBERS_AT_ONCE = 1 << 16  # values in the matrices that are processed together, so that they stay in the cache


class ProvedTree(NamedTuple):
    """Result of a tree: for sizes tau from `first`, every support not `listed` has `f >= above[tau - first]`."""

    first: int
    above: Array
    listed: dict[int, list[tuple[int, ...]]]
    leaves: int
    rows: int = -1
    gamma: int = 0


def split_array(which: Array, size: int) -> Iterator[Array]:
    """Yield an array in parts, whose memory is limited if each entry needs `size` values."""
    step = max(1, NUMBERS_AT_ONCE // max(1, size))
    return iter(np.split(which, range(step, len(which), step))) if len(which) else iter(())


def read_leaves(nodes: list[int], q: int) -> list[tuple[int, int, int]]:
    """Return, for each leaf, the included columns and all remaining columns, as bits, and its number in the tree.

    A tree is stored in preorder: at a split, the part with the column comes first, then the part without it.
    """
    leaves, open_nodes = list[tuple[int, int, int]](), [(0, (1 << q) - 1)]
    for node in nodes:
        need(open_nodes, "the tree has nodes after its last leaf")
        mine, free = open_nodes.pop()
        if node < 0:
            leaves.append((mine, free, node))
        else:
            need(free & ~mine & 1 << node, f"the tree branches twice on column {node + 1}")
            open_nodes += [(mine, free ^ 1 << node), (mine | 1 << node, free)]
    need(not open_nodes, "the tree ends before its last leaf")
    return leaves


def _columns_of_bits(bits: tuple[int, ...], q: int) -> Array:
    width = (q + 7) // 8
    packed = np.frombuffer(b"".join(number.to_bytes(width, "little") for number in bits), dtype=np.uint8)
    return np.unpackbits(packed.reshape(len(bits), width), axis=1, count=q, bitorder="little").astype(bool)


class ReadTree(NamedTuple):
    """A tree before its check: thresholds and listed supports by size, and its L leaves.

    `inside` and `every` (L, q) are the included and all remaining columns, `codes` (L,) the numbers of the leaves.
    `to_bound` (L, sizes) is True if a bound has to reach the threshold, because no listed support closes the size.
    """

    first: int
    sizes: Array
    above: Array
    listed: dict[int, list[tuple[int, ...]]]
    inside: Array
    every: Array
    codes: Array
    to_bound: Array


def read_tree(line: dict[str, Any], q: int, points: int, kind: Arithmetic, unit: Any) -> ReadTree:
    """Return the listed supports of a tree and the conditions to be checked at its leaves.

    Parameters
    ----------
    line : dict
        Tree in the proof.
    q, points : int
        Numbers of columns and of points.
    kind : Floats or Fractions
        Arithmetic.
    unit : number
        Divisor of the objectives in the proof.
    """
    first, last = integers(line["taus"], 0, q + 1, "the sizes of a tree")
    need(first <= last, f"the sizes of the tree, {first} to {last}, are reversed")
    sizes = np.arange(first, last + 1)
    above = kind.from_floats(numbers(line["above"], len(sizes), "the thresholds of a tree")) / unit
    supports = [support(values, q) for values in line["listed"]]
    listed = {tau: [chosen for chosen in supports if len(chosen) == tau] for tau in sizes.tolist()}
    listed_bits = {sum(1 << j for j in chosen) for chosen in supports}
    need(
        len(listed_bits) == sum(map(len, listed.values())) == len(supports),
        "the tree lists a support twice, or lists a support of a size that the tree does not cover",
    )
    nodes = integers(line["nodes"], -1 - points, q, "the nodes of a tree")
    least, most, named = zip(*read_leaves(nodes, q), strict=True)
    inside, every, codes = _columns_of_bits(least, q), _columns_of_bits(most, q), np.array(named)
    low, high = inside.sum(1)[:, None], every.sum(1)[:, None]
    to_bound = (sizes >= low) & (sizes <= high)
    for bits, size in ((least, low), (most, high)):
        to_bound &= ~((sizes == size) & np.array([number in listed_bits for number in bits])[:, None])
    return ReadTree(first, sizes, above, listed, inside, every, codes, to_bound)


Terms = list[list[int]]


def check_tree(
    line: dict[str, Any], m: BoundedMoments, penalty: Penalty, kind: Arithmetic, units: Any, terms: Terms
) -> ProvedTree:
    """Check every leaf of a tree; return its result.

    Parameters
    ----------
    line : dict
        Tree in the proof.
    m : BoundedMoments
        Moments of its rows.
    penalty : (q,) array, number
        Factor of `b_j^2`, and its relative error.
    kind : Floats or Fractions
        Arithmetic.
    units : number, (q,) array
        Divisor of the objectives in the proof, and exponents that scale points.
    terms : list of lists of int
        Columns of each term.
    """
    q, single = len(m.c), len(terms) == len(m.c)
    points = [point_of_line(point, units[1]) for point in line.get("points", [])]
    b = kind.from_floats(np.array(points).reshape(len(points), q))
    need(single or "part" not in line, "the field `part` of a tree is not supported with terms of several columns")
    part_of = _blocks_of_line(line["part"], m, penalty, kind, units) if "part" in line else None
    base, slopes = _bound_at_points(m, penalty, b, kind) if part_of is None else (b, b)
    if not single:
        slopes = np.stack([slopes[:, term].sum(1) for term in terms], axis=1) * (1 + (q + 2) * kind.u)
    tree = read_tree(line, len(terms), len(points), kind, units[0])
    _, sizes, above, _, inside, every, codes, to_bound = tree
    alike = np.where(codes == RIDGE, every @ np.array(list(map(len, terms))), -1)  # groups of leaves
    for a in np.unique(alike[to_bound.any(1)]).tolist():
        memory = a * a if a >= 0 else q if part_of is None else q * max(map(len, part_of.inverse))
        for group in split_array(np.flatnonzero((alike == a) & to_bound.any(1)), memory):
            leaves, at = (inside[group], every[group]), -2 - codes[group]
            if a >= 0:
                bound = (_own_fits if single else partial(_own_terms, terms))(m, penalty, leaves, sizes, kind)
            elif part_of is None:
                bound = _dual(base[at], slopes[at], leaves, sizes, kind)
            else:
                bound = _block_dual(m, part_of, (b, at), leaves, sizes, kind)
            for i, t in np.argwhere(to_bound[group] & ~(bound >= above).astype(bool)).tolist():
                words = f"a bound below the threshold of size {sizes[t]}, and its supports are not listed"
                need(False, f"leaf {group[i] + 1} has {words}")
    return ProvedTree(tree.first, above, tree.listed, len(codes))


def point_of_line(point: Any, shift: Array) -> Array:
    """Return a point of a tree, in scaled units."""
    (exponent, columns, values), out = point, np.zeros(len(shift))
    integers([exponent], -1000, 1000, "a dual point")
    integers(columns, 0, len(shift), "a dual point")
    integers(values, -(1 << 53), 1 << 53, "a dual point")
    need(len(columns) == len(values) == len(set(columns)), "a dual point names a column twice or lacks a value")
    out[columns] = np.ldexp(np.array(values, dtype=float), exponent + shift[columns])
    need(np.abs(out).max(initial=0.0) < 1e100, "a dual point has a number above 1e100")
    return out


def _own_fits(
    m: BoundedMoments, penalty: Penalty, leaves: tuple[Array, Array], sizes: Array, kind: Arithmetic
) -> Array:
    """Return bounds of leaves of a columns by ridge fits b: f and m-th smallest cost, or f and m of `weight b^2`."""
    inside, every = leaves
    sets = np.nonzero(every)[1].reshape(len(every), -1)
    a, u, mine, own = sets.shape[1], kind.u, np.take_along_axis(inside, sets, 1), fits([m], penalty, sets, kind)
    least = np.maximum(abs(own.beta) - own.norm * own.excess[:, None] * (1 + 4 * u), 0 * own.beta)
    cost = -kind.round_upwards(-((least / own.norm) ** 2 * (1 - 8 * u)))
    ridge = penalty[0][sets] * least**2 * (1 - penalty[1]) * (1 - (a + 16) * u)
    by_cost, by_ridge = (np.sort(np.where(mine, np.inf, gain), axis=1) for gain in (cost, ridge))
    gain = np.concatenate([0 * own.lower[:, None], np.maximum(by_cost, np.cumsum(by_ridge, axis=1))], axis=1)
    bound = own.lower[:, None] + gain[:, np.clip(a - sizes, 0, a)]
    return bound - 4 * u * abs(bound)


def _own_terms(
    terms: Terms, m: BoundedMoments, penalty: Penalty, leaves: tuple[Array, Array], sizes: Array, kind: Arithmetic
) -> Array:
    """Return bounds of leaves by ridge fits of terms.

    The bound is f of all columns; for supports that drop m terms, it is the m-th smallest f without one free term.
    """
    (inside, every), count = leaves, len(terms)
    pairs = [*zip(*np.nonzero(every & ~inside), strict=True), *((leaf, count) for leaf in range(len(every)))]
    chosen = [np.flatnonzero(every[leaf] & (np.arange(count) != term)).tolist() for leaf, term in pairs]
    value = np.full((len(every), count + 1), np.inf, dtype=m.c.dtype)  # the last column is for no dropped term
    for which, sets in column_sets(terms, chosen):
        for group in split_array(np.arange(len(sets)), sets.shape[1] ** 2):
            value[tuple(np.array(pairs)[which[group]].T)] = fits([m], penalty, sets[group], kind).lower
    ordered = np.concatenate([value[:, count:], np.sort(value[:, :count], axis=1)], axis=1)
    return np.take_along_axis(ordered, np.clip(every.sum(1)[:, None] - sizes, 0, count), 1)


def column_sets(terms: Terms, supports: Iterable[Iterable[int]]) -> Iterator[tuple[Array, Array]]:
    """Yield, for each number a of columns, indices of the sets of terms with it (L,), and their columns (L, a)."""
    columns = [sorted(j for term in chosen for j in terms[term]) for chosen in supports]
    widths = np.array(list(map(len, columns)))
    for width in np.unique(widths).tolist():
        which = np.flatnonzero(widths == width)
        yield which, np.array([columns[i] for i in which], dtype=np.int64).reshape(len(which), width)


def _bound_at_points(m: BoundedMoments, penalty: Penalty, b: Array, kind: Arithmetic) -> tuple[Array, Array]:
    """Return, for points b (P, q), lower bounds of `yy - b'Q b` and upper bounds of `g^2 / weight` (P, q)."""
    q, u, s = len(m.c), kind.u, abs(b).sum(1)
    r = m.error + 2 * (q + 6) * u
    Qb = kind.product(b, m.Q.T)
    slopes = (abs(m.c - Qb) + (r * (1 + s))[:, None]) ** 2 / (penalty[0] * (1 - penalty[1])) * (1 + (q + 24) * u)
    return m.yy - kind.inner(b, Qb) - r * (1 + s) ** 2, slopes


def _dual(base: Array, slopes: Array, leaves: tuple[Array, Array], sizes: Array, kind: Arithmetic) -> Array:
    """Return bounds of leaves by the dual value at a point of each."""
    (inside, every), none = leaves, 0 * slopes
    own = np.where(inside, slopes, none).sum(1)[:, None]
    others = -np.sort(-np.where(every & ~inside, slopes, none), axis=1)
    lost = own + np.concatenate([0 * own, np.cumsum(others, axis=1)], axis=1)
    lost = np.take_along_axis(lost, np.clip(sizes - inside.sum(1)[:, None], 0, slopes.shape[1]), 1)
    return base[:, None] - lost - 8 * kind.u * (abs(base)[:, None] + lost)


def _blocks_of_line(said: Any, m: BoundedMoments, penalty: Penalty, kind: Arithmetic, units: Any) -> ProvedBlocks:
    """Return W, read as integers times `2^(exponent - unit_i - unit_j)` by block, after proving that it is valid."""
    q, shift = len(m.c), units[1]
    exponent = integers([said["exponent"]], -4000, 4000, "a block")[0]
    members = [integers(some, 0, q, "the columns of a block") for some in said["blocks"]]
    need(sorted(j for some in members for j in some) == list(range(q)), "each column must be in exactly one block")
    need(len(said["entries"]) == len(members), "the tree does not have one list of entries for each block")
    W = list[Array]()
    for some, entries in zip(members, said["entries"], strict=True):
        size = len(some)
        sound = 1 <= size <= MOST_BLOCK_COLUMNS and len(entries) == size * (size + 1) // 2
        need(sound, f"a block of {size} columns with {len(entries)} entries is malformed")
        lower, whole = np.tril_indices(size), np.zeros((size, size))
        whole[lower] = np.array(integers(entries, -(1 << 53), 1 << 53, "the entries of a block"), dtype=float)
        whole = np.ldexp(whole, exponent - np.add.outer(shift[some], shift[some]))
        whole = whole + np.tril(whole, -1).T
        need(np.isfinite(whole).all() and np.abs(whole).max() < 1e100, "a block has a number above 1e100")
        W.append(kind.from_floats(whole) / units[0])
    return proved_block_part([np.array(some, dtype=np.int64) for some in members], W, m, penalty, kind)


def _block_dual(
    m: BoundedMoments, part: ProvedBlocks, points: tuple[Array, Array], leaves: tuple[Array, Array], sizes: Array,
    kind: Arithmetic,
) -> Array:  # fmt: skip
    """Return bounds of leaves by the dual value with blocks at a point of each: points, and the index for each leaf."""
    which, of = np.unique(points[1], return_inverse=True)
    base, values = block_values(m, part, points[0][which], kind)
    out, u = np.empty((len(of), len(sizes)), dtype=base.dtype), kind.u
    for leaf, (inside, every, at) in enumerate(zip(*leaves, of.tolist(), strict=True)):
        sums = np.array([0 * u], dtype=base.dtype)
        for some, value in zip(part.blocks, values, strict=True):
            sums = _add_block(sums, value[at], inside[some], every[some])
        low, high = int(inside.sum()), int(every.sum())
        for t, size in enumerate(sizes.tolist()):
            lost = sums[size] * (1 + (len(values) + 4) * u) if low <= size <= high else 0 * u  # else not claimed
            out[leaf, t] = base[at] - lost - 8 * u * (abs(base[at]) + lost)
    return out


def _add_block(sums: Array, value: Array, inside: Array, every: Array) -> Array:
    """Return the largest sums by number of columns, after adding one more block; -inf if there are none."""
    masks, bits = np.arange(len(value)), 1 << np.arange(len(inside))
    needed, barred = int(bits[inside].sum()), int(bits[~every].sum())
    fitting = (masks & needed == needed) & (masks & barred == 0)
    counts = ((masks[:, None] & bits) > 0).sum(1)
    longer = np.full(len(sums) + len(inside), -np.inf, dtype=sums.dtype)
    for count in range(len(inside) + 1):
        those = value[fitting & (counts == count)]
        if len(those):
            at = slice(count, count + len(sums))
            longer[at] = np.maximum(longer[at], sums + those.max())
    return longer


Support = tuple[int, ...]


class BoundedScores(NamedTuple):
    """Intervals of the training objective and of the held-out error h_N of L supports in K folds: arrays (K, L)."""

    lower: Array
    upper: Array
    held_low: Array
    held_high: Array


class Folds:
    """The folds of a proof: held-out and scored rows of each, proved trees, and subproblems by statement."""

    def __init__(self, design: ScaledDesign, left: list[list[int]], scored: list[list[int]], terms: Terms) -> None:
        self.design, self.left, self.scored, self.terms = design, left, scored, terms
        self.trees, self.by, self.count = list[ProvedTree](), Counter[str](), sum(map(len, scored))
        need(self.count > 0, "the folds score no row")
        self.same = np.array(
            [set(rows) == set(scored_rows) for rows, scored_rows in zip(left, scored, strict=True)], dtype=bool
        )
        self.alone = self.same & np.array([len(rows) == 1 for rows in left], dtype=bool) & (design.within is None)
        self.moments = lru_cache(maxsize=len(left) + 1)(self._moments)
        self.penalty = lru_cache(maxsize=64)(lambda gamma, fold=-1: design.penalty(gamma, self.moments(fold)))
        self.columns = lru_cache(maxsize=64)(self._columns)
        self.about = lru_cache(maxsize=64)(lambda fold, rows: design.centre_rows(self.moments(fold), [*rows]))

    def _moments(self, fold: int) -> Any:
        """Return the moments of the training rows of a fold, or of all rows (-1); a refusal names the fold."""
        try:
            return self.design.exclude_rows([] if fold < 0 else self.left[fold])
        except Refused as error:
            raise Refused(f"fold {fold + 1}: {error}" if fold >= 0 else f"{error}") from None

    def _rows(self, which: list[tuple[int, list[int]]], sets: Array) -> tuple[Array, Array, Any]:
        """Return the columns of some rows about the centres of folds, their targets, and a bound on their errors."""
        off = max(self.moments(fold).center_error for fold, _ in which) + 2 * self.design.kind.u
        Z = np.concatenate([self.about(fold, tuple(rows)) for fold, rows in which])
        return Z[:, :-1][:, sets], Z[:, -1], off

    def _bound_training_rows(
        self, found: BoundedFits, which: list[int], rows: tuple[Array, Array, Any]
    ) -> tuple[Array, Array, Array, Array]:
        """Return bounds on |residual| and on leverages, with the share of the intercept, of rows in the training."""
        kind, share = self.design.kind, self.design.shares[which][:, None]
        low, high = leverage_bounds(found, rows[0], rows[2], kind)
        least, most = residual_bounds(found.beta, found.excess, kind.root_upper_bounds(high), rows, kind)
        return least, most, low + (share - 4 * kind.u), high + (share + 4 * kind.u)

    def scores(self, gamma: float, mine: list[int], supports: list[Support]) -> BoundedScores:
        """Return the intervals of supports of one size (L) in some folds (K).

        Parameters
        ----------
        gamma : float
            Ridge weight.
        mine : list of int
            Folds.
        supports : list of tuple of int
            Supports.
        """
        alone, bounds, order = self.alone[mine].all(), list[BoundedScores](), list[int]()
        for which, sets in column_sets(self.terms, supports):
            a = sets.shape[1] + 4
            for group in split_array(np.arange(len(sets)), len(mine) * a * (1 if alone else a)):
                bounds.append((self._bound_single_rows if alone else self._several)(gamma, mine, sets[group]))
                order += which[group].tolist()
        place = np.argsort(order)
        return BoundedScores(*(np.concatenate(ends, axis=1)[:, place] for ends in zip(*bounds, strict=True)))

    def _bound_single_rows(self, gamma: float, mine: list[int], sets: Array) -> BoundedScores:
        """Return the intervals of supports in folds of one row, by identities from the full-data fit."""
        kind, u, fits_of = self.design.kind, self.design.kind.u, self.fits(gamma, [-1], sets)
        which = [self.left[fold][0] for fold in mine]
        least, most, h_low, h_high = self._bound_training_rows(fits_of, which, self._rows([(-1, which)], sets))
        short, tall = 1 - np.maximum(h_low, 0 * h_low), 1 - h_high
        sound = (tall * 2**20 > 1).astype(bool)
        safe, short = np.where(sound, tall, 0 * tall + 1), np.where(short > 0, short, 0 * short + 1)
        gain_low = -kind.round_upwards(-(least**2) / short) * (1 - 8 * u)
        gain_high = kind.round_upwards(most**2 / safe) * (1 + 8 * u)
        lower = np.where(sound, fits_of.lower - gain_high - 4 * u, 0 * gain_high)
        upper = fits_of.upper - gain_low + 4 * u
        held_low = -kind.round_upwards(-gain_low / short) * (1 - 4 * u)
        held_high = kind.round_upwards(gain_high / safe) * (1 + 4 * u)
        return BoundedScores(lower, upper, held_low, np.where(sound, held_high, np.inf))

    def _several(self, gamma: float, mine: list[int], sets: Array) -> BoundedScores:
        """Return the intervals of supports in folds, by a separate fit in each fold."""
        kind, shape, fits_of = self.design.kind, (len(mine), len(sets)), self.fits(gamma, mine, sets)
        place = np.repeat(np.arange(len(mine)), [len(self.scored[fold]) for fold in mine])
        held_out = self._rows([(fold, self.scored[fold]) for fold in mine], sets)
        beta, excess, norm = (field.reshape(*shape, *field.shape[1:])[place] for field in fits_of[2:5])
        reach = kind.inner(abs(held_out[0]), norm) + held_out[2] * norm.sum(-1)
        least, most = residual_bounds(beta, excess, reach, held_out, kind)
        sums, size = kind.from_floats(np.arange(len(mine))[:, None] == place), (len(place) + 8) * kind.u
        low, high = kind.product(sums, least**2) * (1 - size), kind.product(sums, most**2) * (1 + size)
        return BoundedScores(fits_of.lower.reshape(shape), fits_of.upper.reshape(shape), low, high)

    def fits(self, gamma: float, mine: list[int], sets: Array) -> BoundedFits:
        """Return fits of supports `sets` (L, a) on the training rows of every fold (K), -1 for all rows: K L fits.

        Parameters
        ----------
        gamma : float
            Ridge weight.
        mine : list of int
            Folds.
        sets : (L, a) array
            Supports.
        """
        penalty = self.penalty(gamma)
        if self.design.within is not None:
            penalty = np.stack([self.penalty(gamma, fold)[0] for fold in mine]), penalty[1]
        return fits([self.moments(fold) for fold in mine], penalty, sets, self.design.kind)

    def objectives(self, gamma: float, supports: list[Support]) -> tuple[Array, Array]:
        """Return bounds on the objectives of supports of one size on all rows."""
        chunks, order = list[BoundedFits](), list[int]()
        for which, sets in column_sets(self.terms, supports):
            for group in split_array(np.arange(len(sets)), sets.shape[1] ** 2):
                chunks.append(self.fits(gamma, [-1], sets[group]))
                order += which[group].tolist()
        place = np.argsort(order)
        lower, upper = (np.concatenate(ends)[place] for ends in list(zip(*chunks, strict=True))[:2])
        return lower, upper

    def _columns(self, gamma: float) -> tuple[Any, Array, Array]:
        """Return a lower bound of f(all columns) on all rows and, for every fold, bounds on eta and |e_N|^2."""
        kind, every, which = self.design.kind, np.arange(self.design.q)[None, :], list(range(self.design.n))
        fits_of = self.fits(gamma, [-1], every)
        _, most, _, high = self._bound_training_rows(fits_of, which, self._rows([(-1, which)], every))
        upper_ends = np.concatenate([high, most**2], axis=1)
        sums = np.array([upper_ends[rows].sum(0) * (1 + (len(rows) + 4) * kind.u) for rows in self.left])
        return fits_of.lower[0], sums[:, 0], sums[:, 1]

    def left_out_thresholds(self, gamma: float, above: Any, mine: list[int]) -> Array:
        """Return T (K,) such that `f >= above` on all rows implies `f^(-N) >= T`, by a test at all columns; 0 if none.

        `f^(-N) >= g - (|e_N| + sqrt(eta (g - f_A)))^2 / (1 - eta)` for `g = f(S)`, which grows with g from
        `sqrt(g - f_A) = |e_N| sqrt(eta) / (1 - 2 eta)` on.

        Parameters
        ----------
        gamma : float
            Ridge weight.
        above : number
            Threshold on all rows.
        mine : list of int
            Folds.
        """
        kind, u = self.design.kind, self.design.kind.u
        base, eta, square = self.columns(gamma)
        eta, square = eta[mine], square[mine]
        further = (above - base) * (1 + 2 * u)
        sound = (eta * 2 < 1) & (further > 0)
        sound &= further * (1 - 2 * eta) ** 2 * (1 - 16 * u) >= square * eta * (1 + 16 * u)
        sound = sound.astype(bool)
        if not sound.any():
            return 0 * eta
        cross = kind.root_upper_bounds(square * eta * max(further, 0 * further) * (1 + 8 * u))
        lost = (square + 2 * cross + eta * further) / np.where(sound, 1 - eta, 0 * eta + 1) * (1 + 32 * u)
        return np.where(sound, above - lost - 8 * u * (abs(above) + lost), 0 * lost)


class FoldIntervals:
    """Intervals of h_N of the folds of one pair, in scaled units; they only tighten."""

    def __init__(self, folds: Folds, gamma: tuple[int, float], tau: int) -> None:
        self.folds, (self.gamma, self.value), self.tau = folds, gamma, tau
        self.low = folds.design.kind.from_floats(np.zeros(len(folds.left)))
        self.high = self.low + np.inf

    def add(self, part: dict[str, Any]) -> None:
        """Check one statement of the proof about some folds, and use its intervals."""
        mine, word = integers(part.get("folds", [*range(len(self.low))]), 0, len(self.low), "folds"), part["by"]
        need(len(set(mine)) == len(mine), "a statement of the pair names a fold twice")
        own = word == "own" or self.folds.design.within is None
        need(own, "with fold-specific preprocessing, a tree on all rows gives no bound for a fold")
        if word == "own":
            for fold, name in zip(mine, part["trees"], strict=True):
                tree = self.tree(name, fold)
                self._decide([fold], tree, tree.above[self.tau - tree.first])
        elif word == "list":
            tree = self.tree(part["tree"], -1)
            above = tree.above[self.tau - tree.first]
            self._decide(mine, tree, self.folds.left_out_thresholds(self.value, above, mine))
        else:
            need(word == "loss", f"{word!r} is not a kind of statement of this format")
            self._loss(mine, self.tree(part["tree"], -1), part)
        self.folds.by[word] += len(mine)

    def tree(self, name: Any, rows: int) -> ProvedTree:
        """Return a tree of given rows and this gamma whose range holds the size; or refuse."""
        tree = self.folds.trees[integers([name], 0, len(self.folds.trees), "the number of a tree")[0]]
        need(
            tree.rows == rows and tree.gamma == self.gamma,
            f"the rows or the gamma of tree {name} differ from those of the statement that uses the tree",
        )
        need(
            tree.first <= self.tau < tree.first + len(tree.above),
            f"tree {name} covers {len(tree.above)} sizes from {tree.first}, but not the size {self.tau}",
        )
        return tree

    def objective_lower_bound(self, tree: ProvedTree) -> Any:
        """Return a lower bound of the objective on all rows of all supports of the size, listed or not."""
        above, supports = tree.above[self.tau - tree.first], tree.listed[self.tau]
        return min([above, *self.folds.objectives(self.value, supports)[0]]) if supports else above

    def _decide(self, mine: list[int], tree: ProvedTree, above: Array) -> None:
        """Bound h_N by the listed supports that may be optimal, if no other support can be."""
        need(tree.listed[self.tau], f"a statement from a list uses a tree that lists no support of size {self.tau}")
        scores = self.folds.scores(self.value, mine, tree.listed[self.tau])
        best = scores.upper.min(1)
        for fold, decided in zip(mine, (best < above).tolist(), strict=True):
            need(decided, f"fold {fold + 1}: a support outside the list of the tree may be optimal")
        optimal = ~(scores.lower > best[:, None]).astype(bool)
        low, high = np.where(optimal, scores.held_low, np.inf).min(1), np.where(optimal, scores.held_high, 0).max(1)
        self.low[mine], self.high[mine] = np.maximum(self.low[mine], low), np.minimum(self.high[mine], high)

    def _loss(self, mine: list[int], tree: ProvedTree, part: dict[str, Any]) -> None:
        """Bound h_N from below by the loss of the fit without N on all rows, or by the error of a listed support."""
        folds, u = self.folds, self.folds.design.kind.u
        chosen = [support(values, len(folds.terms)) for values in part["supports"]]
        need(all(len(columns) <= self.tau for columns in chosen), f"a support has more than tau = {self.tau} terms")
        which = np.array(integers(part.get("which", [0] * len(mine)), 0, len(chosen), "the supports of a statement"))
        need(len(which) == len(mine), f"a statement gives {len(which)} supports for {len(mine)} folds")
        upper, above, listed = 0 * self.low[mine], tree.above[self.tau - tree.first], tree.listed[self.tau]
        for size in {len(columns) for columns in chosen}:
            those = [i for i, columns in enumerate(chosen) if len(columns) == size]
            every = folds.scores(self.value, mine, [chosen[i] for i in those]).upper
            for column, i in enumerate(those):
                upper = np.where(which == i, every[:, column], upper)
        low = above - upper - 4 * u * (abs(above) + abs(upper))
        if listed:
            scores = folds.scores(self.value, mine, listed)
            possible = ~(scores.lower > upper[:, None]).astype(bool)
            low = np.minimum(low, np.where(possible, scores.held_low, np.inf).min(1))
        self.low[mine] = np.where(folds.same[mine], np.maximum(self.low[mine], low), self.low[mine])

    def interval(self) -> tuple[Any, Any]:
        """Return the interval of h, per scored row, in units of the file."""
        design, size = self.folds.design, (len(self.low) + 8) * self.folds.design.kind.u
        unit = design.y_unit**2 / self.folds.count
        return self.low.sum() * (1 - size) * unit, self.high.sum() * (1 + size) * unit
