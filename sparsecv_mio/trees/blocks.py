"""Blocks of correlated columns, and a block-diagonal part W of M for the bounds of a perspective tree.

M is the Gram matrix plus the penalty. A block-diagonal W gives tighter node bounds than a diagonal if nearly collinear
columns form small groups. Columns are assigned to blocks greedily by absolute correlation. W is near the maximum of

    log det(M - W) + 20 log det W,        W block-diagonal,

and is used only if `M - W` has a Cholesky factorisation (docs/theory/bounds.md, section 9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.kernels import perspective_tree
from sparsecv_mio.kernels.block_relaxation import (
    MOST_SUPPORTS,
    Blocks,
    BlockWork,
    Mixture,
    bound_node,
    fill_tables,
    new_block_work,
)
from sparsecv_mio.kernels.node_pool import NodePool
from sparsecv_mio.kernels.nodes import INSIDE, Copies, Form, Margin
from sparsecv_mio.kernels.reduced_forms import SHARPNESS
from sparsecv_mio.units import ROUNDING, SUM_RTOL

LARGEST_BLOCK = 8  # maximum number s of columns of a block: a step at a node costs 2^s for each block
CENTRE_STEPS, STEP_GAIN = 80, 1e-3  # maximum number of steps towards the maximum, and minimum gain of a step
LEAST_TIED = 0.5  # absolute correlation with another column that half of the columns must reach
BLOCK_ROUNDING = 1e-7  # share of W that is given up to cover rounding
LEAST_OWN = 1e-5  # minimum share of a column not explained by others of its block; below it, tables are not used
MOST_SLIP = 1e-6  # maximum rounding allowance of a bound, as a share of y'y


def has_correlated_columns(M: FloatArray) -> bool:
    """Return True if half of the columns are correlated enough with another column for blocks to be tried."""
    root = np.sqrt(np.diag(M))
    near = np.abs(M / root / root[:, None])
    np.fill_diagonal(near, 0.0)
    return bool(np.median(near.max(axis=1)) >= LEAST_TIED)


def gather_blocks(M: FloatArray, most: int = LARGEST_BLOCK) -> IntArray:
    """Return blocks of columns (k, most), gathered greedily by |correlation|; -1 fills the rows of smaller blocks."""
    q, root = len(M), np.sqrt(np.diag(M))
    near = np.abs(M / root / root[:, None])
    rows, columns = np.tril_indices(q, -1)
    blocks, block = {j: [j] for j in range(q)}, np.arange(q)
    for at in np.argsort(-near[rows, columns], kind="stable").tolist():
        a, b = int(block[rows[at]]), int(block[columns[at]])
        if a != b and len(blocks[a]) + len(blocks[b]) <= most:
            blocks[a] += blocks.pop(b)
            block[blocks[a]] = a
    member = np.full((len(blocks), most), -1, dtype=np.int64)
    for row, some in zip(member, blocks.values(), strict=True):
        row[: len(some)] = sorted(some)
    return member


def centred_part(M: FloatArray, member: IntArray) -> FloatArray | None:
    """Return the blocks of W, (k, s, s) with ones beyond the size of each; None if M is nearly singular.

    O(q^3) a step: `W <- L exp(t (I - L'V_BB L / 20)) L'` with `W = L L'` and V the inverse of `M - W`.
    """
    q, extra = len(M), int((member < 0).sum())
    whole = np.eye(q + extra) * 2.0
    whole[:q, :q] = M
    at = member.copy()
    at[at < 0] = q + np.arange(extra)  # extra uncorrelated columns make all blocks equally large
    rows, columns = at[:, :, None], at[:, None, :]

    def inverse(W: FloatArray) -> tuple[float, FloatArray] | None:
        remainder = whole.copy()
        remainder[rows, columns] -= W
        try:
            factor = np.linalg.cholesky(remainder)
            own = np.linalg.cholesky(W)
        except np.linalg.LinAlgError:
            return None
        value = np.log(np.diag(factor)).sum() + SHARPNESS * np.log(np.einsum("bii->bi", own)).sum()
        return 2.0 * float(value), np.asarray(np.linalg.inv(remainder)[rows, columns], dtype=np.float64)

    try:
        W = np.linalg.inv(np.linalg.inv(whole)[rows, columns]) / (len(at) * 1.001)
    except np.linalg.LinAlgError:
        return None
    now, step = inverse(W), 0.5
    for _ in range(CENTRE_STEPS):
        if now is None or step < 1e-3:
            break
        L = np.linalg.cholesky(W)
        Lt = L.transpose(0, 2, 1)
        values, vectors = np.linalg.eigh(np.eye(len(member.T)) - Lt @ now[1] @ L / SHARPNESS)
        grown = (vectors * np.exp(np.clip(step * values, -3.0, 1.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
        trial = L @ grown @ Lt
        trial = 0.5 * (trial + trial.transpose(0, 2, 1))
        new = inverse(trial)
        if new is None or new[0] <= now[0]:
            step *= 0.5
            continue
        gain, W, now, step = new[0] - now[0], trial, new, min(1.3 * step, 1.0)
        if gain < STEP_GAIN:
            break
    return None if now is None else np.asarray(W * (1.0 - BLOCK_ROUNDING))


@dataclass(frozen=True, eq=False)
class BlockPart:
    """A block-diagonal part W of M with `M - W` positive semidefinite.

    Attributes
    ----------
    M : (q, q) array
        Matrix of the problem.
    member : (k, s) int array
        Columns of each block, s up to `LARGEST_BLOCK`; -1 beyond its size.
    W : (q, q) array
        Block-diagonal part.
    """

    M: FloatArray
    member: IntArray
    W: FloatArray

    def tables(self, columns: IntArray, yy: float, tau: int) -> Blocks | None:
        """Return the kernel tables for supports of tau of some columns; None if rounding errors are large.

        O(2^s q) for blocks of s columns.

        Parameters
        ----------
        columns : int array
            Columns in ascending order.
        yy : float
            Squared length of the target.
        tau : int
            Size of a support.
        """
        place = np.full(len(self.M) + 1, -1, dtype=np.int64)
        place[columns] = np.arange(len(columns))
        mine = place[self.member]
        mine = np.take_along_axis(mine, np.argsort(mine < 0, axis=1, kind="stable"), axis=1)
        mine = np.ascontiguousarray(mine[mine[:, 0] >= 0])
        W, M = self.W[np.ix_(columns, columns)], self.M[np.ix_(columns, columns)]
        q, k = len(columns), len(mine)
        factor, pivot = np.zeros((k, 1 << LARGEST_BLOCK, LARGEST_BLOCK)), np.zeros((k, 1 << LARGEST_BLOCK))
        block, within, least = np.zeros(q, dtype=np.int64), np.zeros(q, dtype=np.int64), 1.0
        for b, row in enumerate(mine):
            some = row[row >= 0]
            block[some], within[some] = b, np.arange(len(some))
            block_of = np.ascontiguousarray(W[np.ix_(some, some)])
            least = min(least, float(fill_tables(block_of, np.int64(len(some)), factor[b], pivot[b])))
        if not least > LEAST_OWN:
            return None
        length, unit = np.sqrt(np.diag(M)), ROUNDING * (4 * q + 64)
        longest = np.sort(length)[::-1][:tau]
        # sum_j length_j |b_j| <= |length_S| |b|, and |b|^2 <= b'M b <= yy, as `M - I` is semidefinite
        prior = float(np.sqrt(yy)) * (1.0 + 2.0 * float(np.linalg.norm(longest)))
        blur = SUM_RTOL / least
        if unit * (2.0 * prior) ** 2 + blur * yy > MOST_SLIP * yy:
            return None
        return Blocks(
            np.ascontiguousarray(M - W), mine, block, within, factor, pivot, np.ascontiguousarray(length), unit, prior,
            blur,
        )  # fmt: skip


@dataclass(eq=False)
class BlockNodes:
    """Data with which a perspective tree goes on by block bounds: tables, work arrays, first mixtures of its rows."""

    blocks: Blocks
    work: BlockWork
    mixtures: perspective_tree.Mixtures

    @classmethod
    def from_block_part(cls, part: BlockPart, columns: IntArray, yy: float, tau: int) -> BlockNodes | None:
        """Return the data for some columns; None if rounding errors are large."""
        blocks = part.tables(columns, yy, tau)
        if blocks is None:
            return None
        return cls(blocks, new_block_work(len(columns), tau, blocks), perspective_tree.new_mixtures(1, blocks))

    def remaining_gap_share(self, pool: NodePool, form: Form) -> float:
        """Return the share of the gap of the open node with the smallest bound that remains with the block bound."""
        q, tau = len(form.c), self.work.sums.shape[1] - 1
        mixture = Mixture(self.mixtures.masks[0].astype(np.int64), np.zeros(MOST_SUPPORTS))
        bar, status = float(pool.best[1]), pool.status[pool.row[0]]
        if int((status == INSIDE).sum()) >= tau:
            return np.inf
        dual, _, _ = bound_node(form, self.blocks, status, (bar, -np.inf), mixture, self.work, np.empty(q), np.empty(q))
        gap = bar - float(pool.bound[0])
        return (bar - float(dual)) / gap if gap > 0.0 else np.inf

    def process_nodes(self, pool: NodePool, form: Form, copies: Copies, margin: Margin, nodes: int) -> int:
        """Process at most a given number of nodes of the tree; return a code of `node_pool`."""
        while len(self.mixtures.share) < len(pool.status):
            self.mixtures = perspective_tree.grow_mixtures(self.mixtures)
        return int(
            perspective_tree.process_nodes_in_blocks(
                pool, self.mixtures, form, self.blocks, copies, margin, self.work, nodes
            )
        )


class ChosenBlocks(NamedTuple):
    """Blocks of columns in the form that `gather_blocks` returns, and the blocks of W in the units of the problem."""

    member: IntArray
    W: FloatArray


def chosen_blocks(M: FloatArray, scale: FloatArray) -> ChosenBlocks | None:
    """Choose blocks and W; return None if M is nearly singular. O(q^3) a step.

    Parameters
    ----------
    M : (q, q) array
        Matrix in normal form.
    scale : (q,) array
        Factors by which the columns of the problem were multiplied.
    """
    member = gather_blocks(M)
    W = centred_part(M, member)
    unit = np.append(scale, 1.0)[member]
    return None if W is None else ChosenBlocks(member, W / (unit[:, :, None] * unit[:, None, :]))


def block_part(M: FloatArray, chosen: ChosenBlocks, scale: FloatArray) -> BlockPart | None:
    """Return a block-diagonal part of M; None if rounding prevents the proof that `M - W` is semidefinite.

    The cost is O(q^3).

    Parameters
    ----------
    M : (q, q) array
        Matrix in normal form.
    chosen : ChosenBlocks
        Blocks, and W in the units of the problem.
    scale : (q,) array
        Factors by which the columns of the problem were multiplied.
    """
    q, W = len(M), np.zeros_like(M)
    for row, block in zip(chosen.member, chosen.W, strict=True):
        some = row[row >= 0]
        W[np.ix_(some, some)] = block[: len(some), : len(some)] * scale[some, None] * scale[some]
    root = np.sqrt(np.diag(M))
    scaled = W / root / root[:, None]
    try:
        np.linalg.cholesky((M - W) / root / root[:, None] - 0.5 * BLOCK_ROUNDING * scaled)
    except np.linalg.LinAlgError:
        return None
    # the other half of BLOCK_ROUNDING must exceed the possible error of the factorisation
    if not 0.5 * BLOCK_ROUNDING * float(np.linalg.eigvalsh(scaled)[0]) > 4.0 * ROUNDING * q * (q + 2):
        return None
    return BlockPart(M, chosen.member, W)
