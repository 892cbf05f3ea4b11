"""The relaxation over clusters with intervals of coefficients: its parts against their definitions by enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from sparsecv_mio.kernels import cluster_relaxation as kernel
from sparsecv_mio.kernels.cluster_relaxation import NO_CLUSTER, NO_MOST, NO_TERM, BoxEnds, ClusterChoice
from sparsecv_mio.kernels.nodes import DROPPED, FREE, INSIDE, Accuracy, Form

from .plain import Floats, Small, small

KINDS = ("tall", "correlated", "wide", "copies", "zero column", "tied", "orthogonal")
SEEDS = range(3 * len(KINDS))


def choice_of(q: int, rng: np.random.Generator) -> ClusterChoice:
    """Up to three clusters of one to three columns among q, and k."""
    cluster, asked = np.full(q, NO_CLUSTER, dtype=np.int64), 0
    order = rng.permutation(q)
    while asked < 3 and len(order) and rng.random() < 0.6:
        size = min(int(rng.integers(1, 4)), len(order))
        cluster[order[:size]], order, asked = asked, order[size:], asked + 1
    return ClusterChoice(cluster, asked, int(rng.integers(max(asked, 1), q + 1)), NO_MOST, NO_TERM)


def box_of(q: int, rng: np.random.Generator) -> BoxEnds:
    """Intervals that hold zero: infinite, empty except for zero, on one side, on both."""
    ends = rng.choice([0.0, 0.1, 0.5, 2.0, np.inf], size=(2, q))
    return BoxEnds(-ends[0], ends[1])


def supports(choice: ClusterChoice) -> list[tuple[int, ...]]:
    every = combinations(range(len(choice.cluster)), choice.k)
    return [S for S in every if set(range(choice.asked)) <= set(choice.cluster[list(S)].tolist())]


def drawn(seed: int) -> tuple[Small, ClusterChoice, BoxEnds, np.random.Generator]:
    rng = np.random.default_rng([31, seed])
    problem = small(seed, KINDS[seed % len(KINDS)])
    return problem, choice_of(problem.q, rng), box_of(problem.q, rng), rng


def score(g: Floats, box: BoxEnds) -> Floats:
    end = np.clip(g, box.lo, box.hi)
    return np.asarray(2.0 * g * end - end**2)


def dual(problem: Small, choice: ClusterChoice, box: BoxEnds, b: Floats) -> float:
    h = score(problem.c - problem.G @ b, box)
    return problem.yy - float(b @ problem.G @ b) - max(float(h[list(S)].sum()) for S in supports(choice))


def boxed(problem: Small, support: tuple[int, ...], box: BoxEnds) -> float:
    """Least f on a support with coefficients in their intervals."""
    S = [j for j in support if box.lo[j] < box.hi[j]]
    if not S:
        return problem.yy
    A = np.vstack([problem.X[:, S], np.eye(len(S))])
    fit = lsq_linear(A, np.concatenate([problem.y, np.zeros(len(S))]), (box.lo[S], box.hi[S]), tol=1e-13)
    return float(2.0 * fit.cost)


@pytest.mark.parametrize("seed", SEEDS)
def test_products_scores_and_the_best_support(seed: int) -> None:
    problem, choice, box, rng = drawn(seed)
    b, out, h = rng.standard_normal(problem.q) * (rng.random(problem.q) < 0.5), np.empty(problem.q), np.empty(problem.q)
    assert kernel.product(problem.G, b, out) == pytest.approx(b @ problem.G @ b)
    assert np.allclose(out, problem.G @ b)
    kernel.scores(problem.c, box, h)
    assert np.allclose(h, score(problem.c, box)) and (h >= 0.0).all()
    best = kernel.best_choice(h, choice)
    assert best.total == pytest.approx(max(h[list(S)].sum() for S in supports(choice)))


@pytest.mark.parametrize("seed", SEEDS)
def test_screening_fixes_what_enumeration_fixes(seed: int) -> None:
    problem, choice, _, rng = drawn(seed)
    h, status = rng.integers(0, 6, size=problem.q).astype(float), np.full(problem.q, FREE, dtype=np.int8)
    room, every = float(rng.integers(0, 3)) + 0.5, supports(choice)
    kernel.screen_choice(h, choice, room, status)
    most = max(h[list(S)].sum() for S in every)
    for j in range(problem.q):
        holding = [h[list(S)].sum() for S in every if j in S]
        without = [h[list(S)].sum() for S in every if j not in S]
        only = choice.cluster[j] >= 0 and np.count_nonzero(choice.cluster == choice.cluster[j]) == 1
        dropped = not holding or most - max(holding) > room
        inside = not without or most - max(without) > room
        assert (status[j] == DROPPED) == dropped
        assert (status[j] == INSIDE) == (inside and not only)


@pytest.mark.parametrize("seed", SEEDS)
def test_lists_of_clusters(seed: int) -> None:
    _, choice, _, _ = drawn(seed)
    lists = kernel.group_by_cluster(choice)
    for i in range(choice.asked + 1):
        number = i if i < choice.asked else NO_CLUSTER
        members = np.sort(lists.columns[lists.start[i] : lists.start[i + 1]])
        assert members.tolist() == np.flatnonzero(choice.cluster == number).tolist()


def weights(v: Floats, box: BoxEnds, step: float, r: float) -> Floats:
    """The least of `(b - v)^2 / step + b^2 / z + r^2 z` over b in z times its interval, by z, numerically."""
    out = np.zeros(len(v))
    for j, x in enumerate(v.tolist()):
        end = box.hi[j] if x > 0 else -box.lo[j]

        def cost(z: float, x: float = abs(x), end: float = end) -> float:
            b = min(x * z / (z + step), end * z) if z > 0 else 0.0
            return (b - x) ** 2 / step + (b * b / z if z > 0 else 0.0) + r * r * z

        grid = np.linspace(0.0, 1.0, 4001)
        out[j] = grid[np.argmin([cost(z) for z in grid])]
    return out


@pytest.mark.parametrize("seed", range(8))
def test_weights_minimise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    v, box, step = rng.normal(size=4), box_of(4, rng), float(rng.choice([0.05, 0.5, 3.0]))
    for r in (0.0, 0.3, 1.0, 4.0):
        ends = np.where(v > 0, box.hi, -box.lo)
        found = [kernel.weight(abs(x), e, r, step) for x, e in zip(v, ends, strict=True)]
        expected = weights(v, box, step, r)
        if r > 0.0:
            assert np.allclose(found, expected, atol=5e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_proximal_map(seed: int) -> None:
    """Its weights sum to k, to at least 1 in every cluster, and no feasible weights are better."""
    problem, choice, box, rng = drawn(seed)
    q, step = problem.q, 0.4
    v, b, z = rng.normal(size=q), np.empty(q), np.empty(q)
    lists = kernel.group_by_cluster(choice)
    kernel.proximal_map(v, step, box, choice, lists, np.zeros(choice.asked + 1), b, z)
    ends = np.where(v > 0, box.hi, -box.lo)
    assert ((z >= 0) & (z <= 1)).all() and z.sum() <= choice.k * (1 + 1e-8)
    assert (b <= box.hi + 1e-12).all() and (b >= box.lo - 1e-12).all()
    usable = ends > 0
    for i in range(choice.asked):
        members = choice.cluster == i
        if (members & usable).sum() >= 1:
            assert z[members].sum() >= 1.0 - 1e-8

    def cost(z: Floats) -> float:
        b = np.minimum(np.abs(v) * z / (z + step), np.where(z > 0, ends, 1.0) * z)
        return float(((b - np.abs(v)) ** 2 / step + np.where(z > 0, b * b / np.where(z > 0, z, 1.0), 0.0)).sum())

    for _ in range(200):  # no feasible weights nearby are better
        other = np.clip(z + 0.05 * rng.normal(size=q), 0.0, 1.0)
        other *= min(1.0, choice.k / other.sum())
        if all(other[choice.cluster == i].sum() >= 1.0 for i in range(choice.asked)):
            assert cost(other) >= cost(z) - 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_descent_closes_the_relaxation_from_both_sides(seed: int) -> None:
    problem, choice, box, _ = drawn(seed)
    q = problem.q
    form = Form(problem.G, problem.c, problem.yy, problem.lipschitz if seed % 2 else 0.2 * problem.lipschitz)
    b, best_b, best_z = np.zeros(q), np.empty(q), np.empty(q)
    found, primal, _ = kernel.descend(form, box, choice, Accuracy(np.inf, 0.0, 3000), b, best_b, best_z)
    assert found == pytest.approx(dual(problem, choice, box, best_b), abs=1e-9 * problem.yy)
    least = min(boxed(problem, S, box) for S in supports(choice))
    assert found <= least + 1e-9 * problem.yy
    if not np.isfinite(box.lo).all() and (np.minimum(-box.lo, box.hi) > 0).all():
        assert primal - found <= 1e-3 * problem.yy
    everyone = BoxEnds(np.full(q, -np.inf), np.full(q, np.inf))
    best_b[:] = 0.0
    b[:] = 0.0
    found, primal, _ = kernel.descend(form, everyone, choice, Accuracy(np.inf, 0.0, 5000), b, best_b, best_z)
    assert primal - found <= 1e-4 * problem.yy
    value = kernel.primal_value(form, float(best_b @ problem.G @ best_b), best_b, np.where(best_z > 0, best_z, 1.0))
    assert value >= found - 1e-9 * problem.yy


@pytest.mark.parametrize("seed", range(6 * len(KINDS)))
def test_sets_with_a_most(seed: int) -> None:
    """Supports of at most k columns, some of them given: the best one, what screening fixes, and the relaxation."""
    rng, problem = np.random.default_rng([7, seed]), small(seed, KINDS[seed % len(KINDS)])
    q, order = problem.q, np.random.default_rng([8, seed]).permutation(problem.q)
    asked, cluster = int(rng.integers(0, min(3, q) + 1)), np.full(q, NO_CLUSTER, dtype=np.int64)
    cluster[order[:asked]], most = np.arange(asked), rng.integers(0, 3, size=2)
    for number, some in enumerate(np.array_split(order[asked:], 3)[:2]):
        cluster[some] = asked + number
    choice = ClusterChoice(cluster, asked, int(rng.integers(asked, q + 1)), most, NO_TERM)
    every = [
        S
        for k in range(choice.k + 1)
        for S in combinations(range(q), k)
        if set(order[:asked].tolist()) <= set(S)
        and all(np.sum(cluster[list(S)] == asked + i) <= most[i] for i in range(2))
    ]
    h, status = rng.integers(0, 6, size=q).astype(float), np.full(q, FREE, dtype=np.int8)
    best = max(h[list(S)].sum() for S in every)
    found = kernel.best_choice(h, choice)
    assert found.total == best and not found.taken[order[:asked]].any()
    assert h[found.taken].sum() == best - h[order[:asked]].sum()
    room = float(rng.integers(0, 3)) + 0.5
    kernel.screen_choice(h, choice, room, status)
    for S in every:
        if h[list(S)].sum() >= best - room:
            assert not (status[list(S)] == DROPPED).any() and set(np.flatnonzero(status == INSIDE)) <= set(S)
    b, best_b, best_z, box = np.zeros(q), np.empty(q), np.empty(q), BoxEnds(np.full(q, -np.inf), np.full(q, np.inf))
    form = Form(problem.G, problem.c, problem.yy, problem.lipschitz)
    value, primal, _ = kernel.descend(form, box, choice, Accuracy(np.inf, 0.0, 5000), b, best_b, best_z)
    least = score(problem.c - problem.G @ best_b, box)
    largest = max(least[list(S)].sum() for S in every)
    assert value == pytest.approx(problem.yy - best_b @ problem.G @ best_b - largest, abs=1e-9 * problem.yy)
    assert value <= min(boxed(problem, S, box) for S in every) + 1e-9 * problem.yy
    assert primal - value <= 1e-4 * problem.yy


def test_relaxation_of_terms_is_tight() -> None:
    """The best point is the relaxation with one weight for a term."""
    rng = np.random.default_rng(5)
    term = np.repeat(np.arange(6), [3, 1, 2, 4, 1, 2])
    X = rng.normal(size=(12, len(term)))
    y = X @ rng.normal(size=len(term)) + rng.normal(size=12)
    G, c, yy = X.T @ X, X.T @ y, float(y @ y)
    everywhere = BoxEnds(np.full(len(term), -np.inf), np.full(len(term), np.inf))
    choice = ClusterChoice(np.full(6, NO_CLUSTER), 0, 2, NO_MOST, term)
    best, z = np.empty(len(term)), np.empty(len(term))
    dual, primal, _ = kernel.descend(
        Form(G, c, yy, float(np.linalg.eigvalsh(G)[-1])), everywhere, choice, Accuracy(np.inf, 0.0, 20000),
        np.zeros(len(term)), best, z,
    )  # fmt: skip
    assert primal == pytest.approx(dual, rel=1e-5)
    h, total = (c - G @ best) ** 2, np.empty(6)
    kernel.sum_by_term(h, choice, total)
    assert total == pytest.approx(np.bincount(term, h))
    assert dual == pytest.approx(yy - best @ G @ best - np.sort(total)[-2:].sum())
