"""Every number that decides what a search runs, evaluated once. Plain data: printed, stored, changed by tests."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from sparsecv_mio.bounds.more_weight import LEFT_OUT_WEIGHTS
from sparsecv_mio.search.cells import has_rows_of_pairs
from sparsecv_mio.search.context import Context
from sparsecv_mio.search.problems.protocol import Capability, FoldProblem
from sparsecv_mio.thresholds import (
    FEW_FOLDS,
    FEWEST_FOLDS,
    LARGEST_FOLD,
    MANY_FOLDS,
    PATH_TREE_COLUMNS,
    SMALL,
    SUPPORTS_TRIED,
)
from sparsecv_mio.trees.subsets import FIRST_LOOK, FIRST_NODES, ROUND_GROWTH, UNLIMITED

MIN_ROWS_OF_COLUMN = 10  # training rows per column from which on supports of the full data estimate errors of folds


def _setting(default: Any, unit: str, reason: str) -> Any:
    return field(default=default, metadata={"unit": unit, "reason": reason})


@dataclass(frozen=True)
class Plan:
    """What a search runs, and with which limits. `metadata` of a field has its unit, and why it has its value."""

    orders: tuple[str, ...] = _setting(
        ("first answers", "winner first"), "names", "together: cheap trees; winner first: expensive trees of folds"
    )
    order_of_pairs: str = _setting("given pairs", "name", "of the pairs of a goal beyond the choice")
    n_threads: int = _setting(1, "threads", "--threads")
    lists_held_out: bool = _setting(False, "-", f"{FEWEST_FOLDS} folds or more that score all their held-out rows")
    searches_folds: bool = _setting(
        False, "-", f"over {SMALL} columns, under {MIN_ROWS_OF_COLUMN} rows a column, at most {FEW_FOLDS} folds"
    )
    searches_all_folds: bool = _setting(
        False, "-", f"squared loss, over {SMALL} columns, at most {FEW_FOLDS} folds: they learn from each other"
    )
    relaxes_full_data: bool = _setting(False, "-", "roots of trees of the full data bound all sizes at once")
    first_full_nodes: int = _setting(0, "nodes", "of the first trees on the full data; 0: local search alone")
    leaves_folds_out: bool = _setting(
        False, "-", f"{FEWEST_FOLDS} folds of at most {LARGEST_FOLD} rows, at most {PATH_TREE_COLUMNS} columns"
    )
    may_leave_out: bool = _setting(False, "-", f"at most {MANY_FOLDS} folds, and no more than the choice is requested")
    cheap_nodes: int = _setting(0, "nodes", "of all first trees on the full data, up to which no pair is left out")
    tried_supports: int = _setting(SUPPORTS_TRIED, "supports", "of a size that every fold is left out of")
    single_sizes: tuple[int, ...] = _setting((), "indices", "sizes that leave one support: its folds are bounded first")
    weighs_held_out: bool = _setting(False, "-", f"at most {FEW_FOLDS} folds: one fit for each fold, weight and gamma")
    stores_sums: bool = _setting(False, "-", "very many subproblems, of which nobody requests more than the choice")
    first_node_limit: int = _setting(FIRST_NODES, "nodes", "the first tree of a target")
    node_growth: int = _setting(4, "ratio", "nodes of the next tree over those of the last: a third is lost at most")
    max_tries: int = _setting(30, "tries", "with this growth the node limit is beyond any tree")
    full_data_folds: int = _setting(1, "folds", "whose nodes a tree of the full data may take; at most 8, by timing")
    list_folds: int = _setting(8, "folds", "whose nodes a list may take, by timing")
    weighted_pairs: int = _setting(0, "pairs", "that are open, from which on fits at every weight and gamma save time")
    relaxed_stride: int = _setting(4, "sizes", "between relaxations of the full data: each bounds smaller sizes too")
    max_rises: int = _setting(3, "sizes", "in a row with a rising estimate, after which the search in folds ends")
    search_share: float = _setting(0.4, "share of a limit", "after which no better supports of all folds are searched")
    initial_share: float = _setting(0.05, "share of a limit", "after which initial supports are no longer improved")
    choice_share: float = _setting(0.5, "share of a limit", "for the choice of the pair; then the weakest pairs first")
    weakest_share: float = _setting(0.02, "share of the gap", "of the smallest bound, within which pairs are weakest")
    rise_share: float = _setting(0.1, "share of the upper bound", "by which weak pairs are raised late in a limit")
    closed_share: float = _setting(0.5, "share of the gap", "that a list may leave in folds that are not solved alone")

    @classmethod
    def make(cls, context: Context, full: FoldProblem) -> Plan:
        """Evaluate every threshold for a question.

        Parameters
        ----------
        context : Context
        full : FoldProblem
            Problem of the full data, asked for its capabilities.
        """
        if Capability.SHARED_TREE in full.capabilities:
            return cls._of_shared_trees(context, full)
        folds, q = context.folds, context.data.q
        lists = Capability.HELD_OUT_LISTS in full.capabilities
        lists = lists and folds.k >= FEWEST_FOLDS and bool(folds.scores_all_left_out.all())
        requests_all = context.all_asked_for or bool(context.stability) or context.all_shown
        return cls(
            n_threads=context.threads,
            lists_held_out=lists,
            searches_folds=q > SMALL and q * MIN_ROWS_OF_COLUMN > folds.least_training and folds.k <= FEW_FOLDS,
            searches_all_folds=Capability.FOLD_SEARCHES in full.capabilities and q > SMALL and folds.k <= FEW_FOLDS,
            relaxes_full_data=Capability.FULL_DATA_RELAXATIONS in full.capabilities,
            single_sizes=tuple(t for t, size in enumerate(context.grid.taus.tolist()) if full.has_one_support(size)),
            weighs_held_out=folds.k <= FEW_FOLDS,
            stores_sums=has_rows_of_pairs(context.shape) and lists and not requests_all,
            full_data_folds=min(folds.k, 8),
            weighted_pairs=len(LEFT_OUT_WEIGHTS) * len(context.grid.gammas),
        )

    @classmethod
    def _of_shared_trees(cls, context: Context, full: FoldProblem) -> Plan:
        """Return the plan for problems whose sizes share a tree."""
        folds, q = context.folds, context.data.q
        leaves_out = folds.k >= FEWEST_FOLDS * folds.times_scored and q <= PATH_TREE_COLUMNS
        leaves_out = leaves_out and folds.sizes.max() <= LARGEST_FOLD and Capability.LEFT_OUT_FITS in full.capabilities
        return cls(
            orders=("together",),
            order_of_pairs="together",
            n_threads=context.threads,
            first_full_nodes=FIRST_LOOK * ROUND_GROWTH,
            first_node_limit=FIRST_LOOK * ROUND_GROWTH,
            node_growth=ROUND_GROWTH,
            leaves_folds_out=bool(leaves_out),
            may_leave_out=not context.all_asked_for and folds.k <= MANY_FOLDS,
            cheap_nodes=FIRST_LOOK * ROUND_GROWTH if q <= SMALL else -1,
        )

    def node_limit(self, tries: int, n_folds: int = 1) -> int:
        """Return the nodes of a tree of a target that was tried so often, in place of those of some folds."""
        return int(min(self.first_node_limit * self.node_growth**tries * n_folds, UNLIMITED))

    def lines(self) -> list[str]:
        """Return the plan as lines of text: `name: value [unit] reason`."""
        return [
            f"{setting.name}: {getattr(self, setting.name)} [{setting.metadata['unit']}] {setting.metadata['reason']}"
            for setting in fields(self)
        ]
