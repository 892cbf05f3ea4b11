"""A small problem for the parts of a search, the same at every call."""

from __future__ import annotations

from typing import Any

import problems
from runs import new_run

from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.search.state.pairs import Grid


def drawn(p: int = 6, n: int = 30, folds: str = "5", noise: float = 0.5) -> tuple[Any, Any, Grid]:
    """Data in standard coordinates, folds, and a grid of two gammas and tau 1 to 3."""
    dataset = problems.linear(5, n, p, {0: 2.0, 3: -1.0}, noise=noise)
    return standardize(dataset), make_folds(folds, dataset), Grid.of([0.1, 1.0], [1, 2, 3], p)


def drawn_run(method: str = "rounds", **words: Any) -> Any:
    """A method over the small problem, not begun."""
    return new_run(*drawn(), method=method, **words)
