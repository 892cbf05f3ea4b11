"""False proofs, made by hand, that checkers before this one accepted in floats."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged_proofs import write_lines

from sparsecv_mio.check.main import check
from sparsecv_mio.check.proof_file import Refused, compute_digest

MODES = ("fast", "exact")


def head(X: np.ndarray, y: np.ndarray, **asked: Any) -> dict[str, Any]:
    names = [f"x{j}" for j in range(X.shape[1])]
    data = {"n": len(y), "p": X.shape[1], "names": names, "target": "y", "digest": compute_digest(X, y, names, "y")}
    columns = list(range(X.shape[1]))
    return {"format": "sparsecv-proof/1", "data": data, "columns": columns, "units": [0] * len(columns),
            "taus": [1], **asked}  # fmt: skip


@pytest.mark.parametrize("gamma", [1e-300, 1e-250, 1e-20])
@pytest.mark.parametrize("scale, intercept", [("length", "fold"), ("none", "none")])
@pytest.mark.parametrize("mode", MODES)
def test_no_number_that_overflows_is_a_bound(
    tmp_path: Path, gamma: float, scale: str, intercept: str, mode: str
) -> None:
    """Infinity times zero left no listed support that may be optimal, and so the interval from infinity to 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2))
    y = X[:, 0] + rng.normal(size=8)
    folds = range(8)
    tree = {"kind": "tree", "gamma": 0, "taus": [1, 1], "above": [1e300], "listed": [[0], [1]], "nodes": [0, -1, -1]}
    false = {"gamma": 0, "tau": 0, "lower": 1e300, "upper": 0.0}
    lines = [head(X, y, scale=scale, intercept=intercept, gammas=[gamma], left=[[i] for i in folds])]
    lines += [{**tree, "rows": i} for i in folds]
    own = [{"by": "own", "folds": list(folds), "trees": list(folds)}]
    lines += [{"kind": "pair", "parts": own, **false}, {"kind": "claim", **false}]
    write_lines(tmp_path / "proof", lines)
    with pytest.raises(Refused):
        check(str(tmp_path / "proof"), X, y, mode)


@pytest.mark.parametrize("power", [30, 38, 42, 46])
@pytest.mark.parametrize("mode", MODES)
def test_the_scale_of_a_column_with_a_large_offset(tmp_path: Path, power: int, mode: str) -> None:
    """Without an intercept a column keeps its offset, beside which its spread had lost digits."""
    rng, n, offset = np.random.default_rng(power), 6, 2.0**power
    x = offset + np.round(rng.normal(size=n) * 64) / 64
    X, y, gamma = x[:, None], 3 * x / offset + 1e-3 * rng.normal(size=n), 2 * n * offset**2
    exact = [Fraction(v) for v in x.tolist()]
    target = [Fraction(v) for v in y.tolist()]
    spread = sum((v - sum(exact) / n) ** 2 for v in exact)
    product = sum(a * b for a, b in zip(exact, target, strict=True))
    value = sum(v * v for v in target) - product**2 / (sum(v * v for v in exact) + Fraction(gamma) / 2 * spread)
    plain = head(X, y, scale="length", intercept="none", gammas=[gamma])
    tree = {"kind": "tree", "rows": -1, "gamma": 0, "taus": [1, 1], "above": [1e300], "listed": [[0]], "nodes": [-1]}
    best = {"kind": "best", "gamma": 0, "tau": 0, "tree": 0, "support": [0]}
    for lower, upper in ((float(value) * (1 + 1e-9), 1e300), (0.0, float(value) * (1 - 1e-9))):
        write_lines(tmp_path / "proof", [plain, tree, {**best, "lower": lower, "upper": upper}])
        with pytest.raises(Refused):
            check(str(tmp_path / "proof"), X, y, mode)
