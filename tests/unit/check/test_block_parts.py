"""Trees with blocks of columns: three judges agree on proofs and alterations, and no W passes that is none."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import second_checker
from forged_proofs import Lines, write_lines

from sparsecv_mio.check.bounded_fits import (
    BoundedMoments,
    ScaledDesign,
    block_values,
    need_semidefinite,
    proved_block_part,
)
from sparsecv_mio.check.main import check
from sparsecv_mio.check.proof_file import Floats, Fractions, Refused
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.problem.training_moments import row_moments
from sparsecv_mio.proofs import threshold_trees
from sparsecv_mio.proofs.proof_lines import proof_head
from sparsecv_mio.proofs.threshold_trees import ProofTree, Units, prove_thresholds, rounding

KINDS = Floats(), Fractions()


def near_copies(seed: int, n: int = 30, q: int = 9) -> Dataset:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, q))[:, np.arange(q) // 3] + rng.choice([0.1, 0.4]) * rng.standard_normal((n, q))
    X = np.round(X * rng.choice([1.0, 100.0], q) + 3.0, 6)
    return Dataset.from_arrays(X, np.round(X[:, ::4].sum(axis=1) / 30.0 + rng.standard_normal(n), 6))


def proved(data: Dataset, gamma: float, tau: int, how: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> Lines:
    """The proof of one best subset, by a tree of blocks."""
    monkeypatch.setattr(threshold_trees, "RIDGE_FIRST_COLUMNS", 2)
    monkeypatch.setattr(threshold_trees, "FEWEST_COLUMNS", 3)
    standard = standardize(data, *how)
    problem, units = row_moments(standard, slice(0, data.n)).problem(standard, gamma), Units.from_data(standard)
    least, support = min(
        (problem.yy - float(problem.c[s] @ np.linalg.solve(problem.M[np.ix_(s, s)], problem.c[s])), s)
        for s in map(list, combinations(range(problem.q), tau))
    )
    above = {tau: least * units.square * (1.0 + 1e-8)}
    tree = next(prove_thresholds(problem, above, units, rounding(problem, standard.divisor)))
    line = tree.line(-1, 0)
    assert ProofTree.from_line(line) == tree and line["points"]
    best = {"kind": "best", "gamma": 0, "tau": 0, "tree": 0, "support": support,
            "lower": least * units.square * (1.0 - 1e-7), "upper": least * units.square * (1.0 + 1e-7)}  # fmt: skip
    lines: Lines = json.loads(json.dumps([proof_head(standard, [gamma], [tau], None, units.exponent), line, best]))
    return lines


def verdicts(lines: Lines, data: Dataset, folder: Path) -> set[bool]:
    """Whether the checker accepts a proof, in both of its modes, and the second one."""
    proof, table, found = folder / "p", folder / "data.csv", set()
    write_lines(proof, lines)
    rows = [
        [*data.names, data.target],
        *([repr(float(v)) for v in (*x, y)] for x, y in zip(data.X, data.y, strict=True)),
    ]
    table.write_text("".join(",".join(row) + "\n" for row in rows))
    for mode in ("fast", "exact"):
        try:
            check(str(proof), data.X, data.y, mode)
        except Refused:
            found.add(False)
        else:
            found.add(True)
    return found | {second_checker.check(proof, table).accepted}


def altered(lines: Lines, rng: np.random.Generator) -> tuple[str, Lines]:
    """One thing in W, its blocks or a point."""
    out = copy.deepcopy(lines)
    part, points = out[1]["part"], out[1]["points"]
    at = int(rng.integers(len(part["blocks"])))
    block, entries, other = part["blocks"][at], part["entries"][at], part["blocks"][at - 1]
    way = str(rng.choice(["scale", "entry", "point", "swap", "turn", "exponent", "short", "twice", "lost"]))
    if way == "scale":
        share = float(rng.choice([1.01, 1.1, 2.0, 8.0, -1.0]))
        part["entries"] = [[int(value * share) for value in one] for one in part["entries"]]
    elif way == "entry":
        size = max(map(abs, entries)) * float(rng.choice([0.05, 0.5, 2.0, -0.5, -2.0]))
        entries[int(rng.integers(len(entries)))] += int(size)
    elif way == "point":
        numbers = points[int(rng.integers(len(points)))][2]
        numbers[int(rng.integers(len(numbers)))] *= int(rng.choice([-1, 0, 2]))
    elif way == "swap":
        block[0], other[0] = other[0], block[0]
    elif way == "turn":
        block.reverse()
    elif way == "exponent":
        part["exponent"] += int(rng.choice([-2, -1, 1, 2]))
    elif way == "short":
        entries.pop()
    elif way == "twice":
        block[0] = other[0]
    else:
        part["blocks"].pop(at), part["entries"].pop(at)
    return way, out


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_three_judges_agree(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, rng = near_copies(seed), np.random.default_rng(seed)
    how = ("length", "variance", "none")[seed % 3], ("fold", "global", "none")[seed % 2]
    gamma = (0.01, 0.1)[seed % 2] * (100.0 if how[0] == "none" else 1.0)
    lines = proved(data, gamma, 3, how, monkeypatch)
    assert "part" in lines[1] and verdicts(lines, data, tmp_path) == {True}
    refused = 0
    for _ in range(30):
        way, other = altered(lines, rng)
        if other != lines:
            found = verdicts(other, data, tmp_path)
            assert len(found) == 1, (way, other[1]["part"])
            assert found == {False} or way in ("scale", "entry", "point", "exponent", "turn"), way
            refused += found == {False}
    assert refused > 15


AT = [np.array([0, 1, 2]), np.array([5]), np.array([4, 3])]


def in_units_of(design: ScaledDesign, share: float) -> tuple[BoundedMoments, Any, list[Any]]:
    """Moments, penalty, and the part of M in the blocks, `share` times the largest that may be taken out."""
    m, penalty = design.exclude_rows([]), design.penalty(0.1)
    M, W = np.asarray(m.Q, dtype=np.float64) + np.diag(np.asarray(penalty[0], dtype=np.float64)), np.zeros((6, 6))
    for some in AT:
        W[np.ix_(some, some)] = M[np.ix_(some, some)]
    edge = share / float(np.linalg.eigvals(np.linalg.solve(M, W)).real.max())
    return m, penalty, [design.kind.from_floats(edge * W[np.ix_(some, some)]) for some in AT]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_a_part_is_taken_up_to_where_what_is_left_ceases_to_be_semidefinite(seed: int, kind: Any) -> None:
    data = near_copies(seed, 20, 6)
    design = ScaledDesign(data.X, data.y, "length", "fold", kind)
    for share, holds in ((0.5, True), (1.0 - 1e-6, True), (1.0 + 1e-6, False), (1.5, False)):
        m, penalty, W = in_units_of(design, share)
        if holds:
            proved_block_part(AT, W, m, penalty, kind)
        else:
            with pytest.raises(Refused, match="not positive semidefinite"):
                proved_block_part(AT, W, m, penalty, kind)


def test_a_block_that_is_not_definite_is_refused() -> None:
    for bad in (
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[0.0, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [0.0, -1.0]],
    ):
        for kind in KINDS:
            with pytest.raises(Refused):
                need_semidefinite(kind.from_floats(bad), kind.from_floats(np.full((2, 2), 2.0**-40)), kind, "none")


@pytest.mark.parametrize("seed", range(8))
def test_values_of_subsets_and_the_rest_hold(seed: int) -> None:
    data, rng, found = near_copies(seed, 20, 6), np.random.default_rng(seed), []
    b = np.round(rng.standard_normal((3, 6)), 3) * rng.choice([1.0, 1e3, 1e-3])
    for kind in KINDS:
        design = ScaledDesign(data.X, data.y, "length", "none", kind)  # the units are the same in both
        m, penalty, W = in_units_of(design, 0.9)
        W = [kind.from_floats(np.round(np.asarray(one, dtype=np.float64), 9)) for one in W]
        part = proved_block_part(AT, W, m, penalty, kind)
        found.append((part, m, *block_values(m, part, kind.from_floats(b), kind)))
    (_, _, base, values), (part, m, sure, exact) = found
    g = m.c - KINDS[1].product(KINDS[1].from_floats(b), part.G)
    for point in range(3):
        room = 1e-9 * (1.0 + float(np.abs(b[point]).sum()) ** 2)
        assert base[point] <= sure[point] <= base[point] + room
        for some, own, near, true in zip(AT, part.W, values, exact, strict=True):
            for mask in range(1 << len(some)):
                mine = [i for i in range(len(some)) if mask >> i & 1]
                value = second_checker.quadratic(
                    [[own[i, j] for j in mine] for i in mine], [g[point, some[i]] for i in mine]
                )
                assert value <= true[point, mask] and value <= near[point, mask]
                assert true[point, mask] <= value * (1 + Fraction(1, 10**9)) + Fraction(1, 10**20)
                assert near[point, mask] <= float(value) * (1.0 + 1e-6) + room
