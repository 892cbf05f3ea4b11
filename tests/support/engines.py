"""How the folds of the default search share work, and in which order it goes, where a test wants one way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparsecv_mio.search import plan
from sparsecv_mio.search.orders import by_size as order_by_size
from sparsecv_mio.search.orders import together as order_together
from sparsecv_mio.search.plan import Plan
from sparsecv_mio.search.problems import one_tree_for_folds

Place = tuple[Any, str, Any]  # what to set, for a monkeypatch


def patch_all(monkeypatch: pytest.MonkeyPatch, places: Iterable[Place]) -> None:
    for place in places:
        monkeypatch.setattr(*place)


def planned(**settings: Any) -> Place:
    """Settings of the plan of every search that is made from now on."""
    make: Callable[..., Plan] = Plan.make
    return Plan, "make", lambda context, full: replace(make(context, full), **settings)


def by_size(nodes: int, **settings: Any) -> list[Place]:
    """The order of many columns, whatever the columns, with first trees of so many nodes."""
    limits = dict.fromkeys(("first_node_limit", "look_nodes", "first_weighted_nodes"), nodes)
    given = {"small_sizes": ()} | limits | settings
    return [(plan, "SMALL", 0), (plan, "_uses_size_order", lambda context: True), planned(**given)]


ALWAYS_WEAKEST: list[Place] = [  # the pairs with the smallest bounds come first once an upper bound is known
    (order, "is_weakest_due", lambda state, plan, pairs, share: bool(np.isfinite(state.bounds().upper.min())))
    for order in (order_by_size, order_together)
]
ON_FULL_DATA: list[Place] = [(plan, "FEWEST_FOLDS", 0), (one_tree_for_folds, "LEAST_SHARE", 0.0)]
ENGINES: dict[str, list[Place]] = {
    "enumerate": [*ON_FULL_DATA, (one_tree_for_folds, "can_share", lambda left_out, n_columns: False)],
    "shared": [*ON_FULL_DATA, (one_tree_for_folds, "EVERY_FOLD", ()), (one_tree_for_folds, "FEWER_FOLDS", ())],
    "per-fold": [(plan, "LARGEST_FOLD", 0)],
}
