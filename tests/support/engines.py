"""How the folds of `rounds` share work, where a test wants one way: by the thresholds that decide about it."""

from __future__ import annotations

from typing import Any

from sparsecv_mio.search import shared_trees

ON_ALL_ROWS: list[tuple[Any, str, Any]] = [(shared_trees, "FEWEST_FOLDS", 0), (shared_trees, "LEAST_SHARE", 0.0)]
ENGINES: dict[str, list[tuple[Any, str, Any]]] = {  # what to set, for a monkeypatch
    "enumerate": [*ON_ALL_ROWS, (shared_trees, "is_applicable", lambda leave_out, columns: False)],
    "shared": [*ON_ALL_ROWS, (shared_trees, "EVERY_FOLD", ()), (shared_trees, "FEWER_FOLDS", ())],
    "per-fold": [(shared_trees, "LARGEST_FOLD", 0)],
}
