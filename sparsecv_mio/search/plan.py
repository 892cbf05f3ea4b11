"""The plan of a search: the numbers that decide which work it does, as plain data that is printed and stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from math import comb
from typing import Any

import numpy as np

from sparsecv_mio.bounds.closed_form import LEFT_OUT_WEIGHTS
from sparsecv_mio.certificate.parts import PlanSetting
from sparsecv_mio.declared_options import plain_scalar
from sparsecv_mio.search.deadline import SLICE_SHARE
from sparsecv_mio.search.problems.protocol import Capability, FoldProblem
from sparsecv_mio.search.state.context import Context
from sparsecv_mio.thresholds import (
    FEW_FOLDS,
    FEWEST_FOLDS,
    FOLDS_ONE_BY_ONE,
    LARGEST_FOLD,
    MANY,
    MANY_FOLDS,
    MANY_FOLDS_BY_ROWS,
    PATH_TREE_COLUMNS,
    SMALL,
    SMOOTH_COLUMNS,
    SUPPORTS_TRIED,
)
from sparsecv_mio.trees.subsets import FIRST_LOOK, FIRST_NODES, ROUND_GROWTH, UNLIMITED
from sparsecv_mio.words import NATIVE, Method

CELLS_AT_ONCE = 1 << 18  # subproblems whose bounds are stated together, about 16 MB
MIN_ROWS_OF_COLUMN = 10  # training rows per column from which full-data supports estimate the errors of folds

ORDERS_OF_METHODS = {
    "algorithm1": ("algorithm1",), "bounds": ("algorithm1",), "grid": ("grid",),
    "joint": ("first_answers", "winner_first"),
}  # fmt: skip


PARTS_PER_WORKER = 3  # minimum number of parts per worker of a cluster into which the gammas of all folds are split
SUPPORTS_OF_SMALL = 1 << 17  # a size with at most this number of supports is solved first
SETTINGS_OF_SOURCES = {  # settings that are False if a bounding method is switched off; other code calls `Plan.uses`
    "fold supports": ("searches_folds_first",), "fold searches": ("searches_all_folds",),
    "fold samples": ("samples_folds",),
    "full-data relaxations": ("relaxes_full_data",), "held-out lists": ("lists_held_out",),
    "left-out trees": ("leaves_folds_out",), "enclosures": ("encloses_folds",),
    "weighted relaxations": ("weighs_held_out",), "weighted trees": ("grows_weighted_trees",),
    "fold roots": ("grows_roots",), "fold relaxations": ("relaxes_folds",),
}  # fmt: skip


def _setting(default: Any, unit: str, readers: str, reason: str) -> Any:
    """Return a setting; `readers` names the orders and bounding methods that read it, or `all` for every search."""
    return field(default=default, metadata={"unit": unit, "readers": tuple(readers.split(", ")), "reason": reason})


@dataclass(frozen=True)
class Plan:
    """Settings of a search and its limits. The metadata of a field has its unit, its readers and its reason."""

    # fmt: off
    # the request
    orders: tuple[str, ...] = _setting(("first_answers", "winner_first"), "names", "all",
        "search orders (schedules of steps), used one after the other")
    order_of_pairs: str = _setting("given_pairs", "name", "all", "search order unless the goal is the certified choice")
    n_threads: int = _setting(1, "threads", "all", "number of threads (--threads)")
    solver: str = _setting(NATIVE, "name", "full-data trees, subproblem trees",
        "solver of the MIO problems (--backend); bounds of an external solver are assumed correct up to 2e-6 of the "
        "scale of the objective")
    mio_budget: int = _setting(UNLIMITED, "MIOs", "all", "maximum number of MIO problems (--mio-budget)")
    counts_mios: bool = _setting(False, "-", "all", "solve each subproblem by one MIO problem, without a node limit")
    waits_for_all: bool = _setting(False, "-", "all",
        "wait for the steps of all threads, so that a run can be repeated exactly")
    steps_of_turn: int = _setting(16, "steps", "all",
        "maximum number of steps on one thread, or of local searches in a step, between two decisions of the search "
        "order")
    solves_all: bool = _setting(False, "-", "all", "solve every subproblem (--method grid)")
    solves_subproblems: bool = _setting(True, "-", "all", "solve subproblems (every method except bounds)")
    sources_off: tuple[str, ...] = _setting((), "names", "all", "bounding methods that --sources switches off")

    # memory
    stores_objectives: bool = _setting(True, "-", "all",
        f"store bounds on the training objective of every subproblem (at most {MANY_FOLDS:,} folds)")
    streams_folds: bool = _setting(False, "-", "left-out trees",
        f"if there are more than {MANY_FOLDS:,} folds: compute and store the bounds for a part of the folds at a time")
    gammas_at_once: int = _setting(1, "gammas", "by_size, together",
        f"number of gammas whose bounds one step computes (at most {CELLS_AT_ONCE:,} subproblems)")
    parts_of_fold: int = _setting(1, "parts", "subproblem trees",
        "number of parts into which the gammas of a fold are split, so that every worker of a cluster has work")

    # bounding methods that are used
    searches_folds_first: bool = _setting(False, "-", "first_answers, subproblem trees, supports in folds",
        f"run the local search in single folds before any bound (with more than {SMALL} columns; with logistic and "
        f"Poisson loss only with fewer than {MIN_ROWS_OF_COLUMN} rows per column and at most {FEW_FOLDS} folds)")
    searches_folds_of_pair: bool = _setting(False, "-", "winner_first",
        "run the local search in every fold of a pair before the tree of this fold (only if the search uses neither "
        "held-out lists nor fold relaxations)")
    searches_all_folds: bool = _setting(False, "-", "first_answers, fold searches",
        f"run the local search in all folds, which exchange supports (up to {FEW_FOLDS} folds; up to "
        f"{MANY_FOLDS_BY_ROWS} with very many columns)")
    samples_folds: bool = _setting(False, "-", "fold samples",
        f"run the local search in a sample of the folds (with more than {FEW_FOLDS} folds)")
    holds_out: bool = _setting(False, "-", "first_answers", "fit each support of the full data in all folds at once")
    lists_held_out: bool = _setting(False, "-", "first_answers, winner_first",
        f"use lists of near-optimal supports for all folds (if at least {FEWEST_FOLDS} folds score all rows)")
    leaves_folds_out: bool = _setting(False, "-", "by_size, first_answers, together",
        f"derive the fits of all folds from full-data fits (with at least {FEWEST_FOLDS} folds of at most "
        f"{LARGEST_FOLD} rows each, and at most {PATH_TREE_COLUMNS} columns)")
    relaxes_full_data: bool = _setting(False, "-", "first_answers, first_supports",
        "bound all sizes by relaxations of the full data before any branch and bound (with logistic and Poisson loss "
        f"up to {SMOOTH_COLUMNS} columns)")
    relaxes_folds: bool = _setting(False, "-", "fold relaxations",
        "solve relaxations of folds before MIO problems, because a relaxation takes less time")
    relaxations_at_once: int = _setting(1, "relaxations", "fold relaxations",
        f"number of fold relaxations in a step (8 with more than {FEW_FOLDS} folds: each relaxation is then fast)")
    grows_roots: bool = _setting(False, "-", "fold roots",
        "take supports from the roots of fold trees if no relaxation gives supports")
    root_nodes: int = _setting(0, "nodes", "fold roots",
        "node limit of the trees of `grows_roots`; with restrictions, a few nodes solve most subproblems")
    encloses_folds: bool = _setting(False, "-", "enclosures",
        f"bound held-out losses by balls around the ridge fits of folds (order `by_size`, at most {MANY} columns)")
    weighs_held_out: bool = _setting(False, "-", "weighted relaxations, winner_first",
        f"solve relaxations with weighted held-out rows (logistic and Poisson loss with at most {FEW_FOLDS} folds)")
    grows_weighted_trees: bool = _setting(False, "-", "weighted trees",
        f"grow trees with weighted held-out rows (order `by_size`, at most {MANY} columns)")
    bounds_reported: bool = _setting(False, "-", "all",
        "after a limit is reached, compute bounds for the folds of the reported pair, without branch and bound")
    reported_folds: int = _setting(FOLDS_ONE_BY_ONE, "folds", "all",
        "after a limit is reached, bounds are computed if at most this number of folds of the reported pair have none")

    # sizes of steps
    first_full_nodes: int = _setting(0, "nodes", "by_size, first full-data trees, together",
        "node limit of the first full-data trees; 0: no branching")
    first_node_limit: int = _setting(FIRST_NODES, "nodes", "by_size, full-data trees, held-out lists, subproblem trees",
        "node limit of the first tree of a subproblem")
    node_growth: int = _setting(4, "ratio",
        "by_size, full-data trees, held-out lists, subproblem trees, together, weighted trees",
        "ratio of the node limit of a tree to that of the previous tree of the subproblem; with the ratio 4, all "
        "earlier trees together have a third of the nodes of the last tree")
    max_tries: int = _setting(30, "trees", "all",
        "maximum number of trees of a subproblem; the last of them has no node limit")
    look_nodes: int = _setting(FIRST_LOOK, "nodes", "by_size, full-data trees, together",
        "node limit of the short full-data tree of each pair")
    slice_seconds: float = _setting(np.inf, "seconds", "by_size, full-data trees, together",
        f"maximum time of a step ({SLICE_SHARE:.0%} of a time limit)")
    full_data_folds: int = _setting(1, "folds", "full-data trees",
        "ratio of the node limit of a full-data tree to that of a fold tree (at most 8, chosen by timings)")
    list_folds: int = _setting(8, "folds", "held-out lists",
        "ratio of the node limit of the tree of a list to that of a fold tree (chosen by timings)")
    relaxed_stride: int = _setting(4, "sizes", "full-data relaxations",
        "distance between the sizes for which relaxations are solved; a relaxation also bounds all smaller sizes")
    tried_supports: int = _setting(SUPPORTS_TRIED, "supports", "left-out trees",
        "maximum number of supports of a size that are tried in every fold")
    first_weighted_nodes: int = _setting(FIRST_LOOK // ROUND_GROWTH, "nodes", "weighted trees",
        "node limit of the first tree with weighted held-out rows")
    max_weighted_tries: int = _setting(3, "trees", "weighted trees",
        "maximum number of weighted trees of a subproblem; a further tree would have 65,536 nodes")
    least_missing: float = _setting(0.05, "share", "weighted trees",
        "minimum distance from the lower bound of a fold to its estimated held-out error, as a share of the rise "
        "requested for the pair; below this minimum, the fold gets no weighted tree")
    near_best: float = _setting(0.25, "share", "weighted trees",
        "minimum possible rise of the lower bound of a fold per node, as a share of the largest such rise of all "
        "folds; below this minimum, the weighted trees of the fold come later")

    # the orders `together` (which `by_size` uses too) and `first_supports`
    cheap_nodes: int = _setting(UNLIMITED, "nodes", "by_size, together",
        "number of nodes of the first full-data trees above which bounds on pairs come before trees of folds (with at "
        f"most {SMALL} columns and {MANY_FOLDS:,} folds, if only the choice is requested)")
    bounds_before_trees: bool = _setting(False, "-", "by_size, together",
        "compute bounds on all folds, which may exclude pairs, before any tree (with more than "
        f"{SMALL} columns and at most {MANY_FOLDS:,} folds, if only the choice is requested)")
    looks_first: bool = _setting(False, "-", "by_size, together",
        f"begin with short full-data trees at all gammas (with more than {SMALL} columns and a time limit)")
    first_trees_share: float = _setting(0.6, "share", "by_size, together",
        "share of a time limit after which no pair gets its first full-data tree, if an answer is known")
    search_share: float = _setting(0.4, "share", "fold samples, fold searches",
        "share of a time limit after which the local search in all folds ends")
    small_sizes: tuple[int, ...] = _setting((), "sizes", "first_supports",
        f"sizes with at most {SUPPORTS_OF_SMALL:,} supports, which are solved first under a time limit")

    # the order `by_size`, and the phase `weakest`
    winner_share: float = _setting(0.5, "share", "by_size",
        "maximum share of the remaining time that the next trees of the pair with the best estimate may take")
    excluded_share: float = _setting(0.5, "share", "by_size",
        "the pair with the best estimate comes first if its solution may exclude this share of the other open pairs")
    winner_growth: int = _setting(2, "ratio", "by_size",
        "ratio of the node limits of successive trees of the pair with the best estimate")
    proof_share: float = _setting(0.4, "share", "by_size, together",
        "share of a time limit after which steps raise the smallest lower bounds, unless a proof is expected in time")
    raised_share: float = _setting(0.2, "share", "all",
        "rise of the smallest lower bounds that the phase `weakest` requests, as a share of upper - lower of the grid")
    near_share: float = _setting(0.5, "share", "by_size, together",
        "the phase `weakest` works on the open pair with the smallest lower bound of each tau (on all such pairs in a "
        "tie) if this bound exceeds the smallest one of all open pairs by at most this share of the requested rise")
    compared_steps: int = _setting(8, "steps", "by_size, together",
        "maximum number of steps of each bounding method that the phase `weakest` compares")

    # the orders `first_answers` and `winner_first`
    initial_share: float = _setting(0.05, "share", "first_answers",
        "share of a time limit after which initial supports are no longer improved")
    single_sizes: tuple[int, ...] = _setting((), "sizes", "first_answers",
        "sizes that allow only one support; their folds get bounds first")
    max_rises: int = _setting(3, "sizes", "first_answers",
        "number of successive sizes without a smaller estimate after which the local search in folds ends")
    open_share: float = _setting(0.5, "share", "winner_first",
        "other pairs come first once the gap of the pair with the best estimate is at most this share of `gap`")
    near_estimates: float = _setting(1.05, "ratio", "winner_first",
        "maximum ratio of the estimate of a pair to the best estimate, for pairs that are solved to get an upper bound")
    easier_share: float = _setting(0.05, "share", "winner_first",
        "while no upper bound is that near, such a pair comes before the pair with the best estimate if the distance "
        "of its full-data bounds is below this share of that of the best pair")
    weighted_pairs: int = _setting(0, "pairs", "winner_first",
        "number of open pairs above which the weighted relaxations of all folds come before steps for single pairs")
    choice_share: float = _setting(0.5, "share", "winner_first",
        "share of a time limit after which steps raise the smallest lower bounds, if these bounds leave a larger part "
        "of the gap than the pair with the best estimate")
    weakest_share: float = _setting(0.02, "share", "winner_first",
        "after `choice_share` of a time limit, steps raise lower bounds that exceed the smallest one by at most this "
        "share of the distance from the smallest one to the bound that excludes a pair (without held-out lists)")
    rise_share: float = _setting(0.1, "share", "full-data trees, winner_first",
        "minimum rise of the lower bound of a pair that steps request: from a full-data tree, as a share of the rise "
        "that is needed; from held-out lists, as a share of the smallest upper bound")
    late_growth: float = _setting(2.0, "ratio", "winner_first",
        "requested ratio of the new to the old smallest lower bound, for held-out lists after `choice_share` of a time "
        "limit")
    # fmt: on

    @classmethod
    def make(cls, context: Context, full: FoldProblem) -> Plan:
        """Evaluate every threshold for a question.

        Parameters
        ----------
        context : Context
            Data, grid, folds and limits of the search.
        full : FoldProblem
            Problem of the full data, whose capabilities decide.
        """
        if Capability.SHARED_TREE in full.capabilities:
            plan = cls._make_shared_tree_plan(context, full)._adapt_to_method(context, full)
        elif Capability.SCREENED_TREES in full.capabilities:
            plan = cls._make_screened_tree_plan(context, full)
        else:
            plan = cls._make_single_size_plan(context, full)._adapt_to_method(context, full)
        plan = plan.switch_off_sources(name.removeprefix("-") for name in context.request.sources or ())
        needs_no_search = plan.lists_held_out or plan.relaxes_folds or not plan.uses("fold supports")
        return replace(plan, searches_folds_of_pair=not needs_no_search)

    @classmethod
    def _make_single_size_plan(cls, context: Context, full: FoldProblem) -> Plan:
        """Return the plan for problems whose sizes are solved one by one: smooth losses, vendors and restrictions."""
        folds, q, can = context.folds, context.data.q, full.capabilities
        has_many_folds = folds.k >= FEWEST_FOLDS and bool(folds.scores_all_left_out.all())
        return cls(
            n_threads=context.threads,
            lists_held_out=Capability.HELD_OUT_LISTS in can and has_many_folds,
            holds_out=Capability.HOLD_OUT in can,
            searches_folds_first=q > SMALL and q * MIN_ROWS_OF_COLUMN > folds.least_training and folds.k <= FEW_FOLDS,
            searches_all_folds=Capability.FOLD_SEARCHES in can and q > SMALL and folds.k <= FEW_FOLDS,
            relaxes_full_data=Capability.FULL_DATA_RELAXATIONS in can and q <= SMOOTH_COLUMNS,
            single_sizes=tuple(filter(full.has_one_support, context.grid.taus.tolist())),
            weighs_held_out=Capability.WEIGHTED_RELAXATIONS in can and folds.k <= FEW_FOLDS,
            full_data_folds=min(folds.k, 8),
            weighted_pairs=len(LEFT_OUT_WEIGHTS) * len(context.grid.gammas),
        )

    @classmethod
    def _make_shared_tree_plan(cls, context: Context, full: FoldProblem) -> Plan:
        """Return the plan for problems whose sizes share a tree: squared-error loss by Gram matrices."""
        folds, q, can = context.folds, context.data.q, full.capabilities
        is_small, few_folds, by_size = q <= SMALL, folds.k <= FEW_FOLDS, _uses_size_order(context)
        nodes = FIRST_LOOK * ROUND_GROWTH
        return cls(
            orders=("together",) if is_small else ("first_supports", "by_size" if by_size else "together"),
            order_of_pairs="together",
            n_threads=context.threads,
            first_full_nodes=0 if by_size else nodes,
            first_node_limit=nodes,
            node_growth=ROUND_GROWTH,
            max_tries=UNLIMITED.bit_length() // ROUND_GROWTH.bit_length(),
            leaves_folds_out=_can_leave_folds_out(context, full),
            bounds_reported=True,
            searches_all_folds=Capability.FOLD_SEARCHES in can and few_folds,
            samples_folds=Capability.FOLD_SEARCHES in can and not few_folds,
            searches_folds_first=not is_small,
            relaxes_full_data=Capability.FULL_DATA_RELAXATIONS in can and by_size,
            relaxed_stride=1,
            small_sizes=_small_sizes(context) if by_size else (),
            encloses_folds=by_size and q <= MANY,
            grows_weighted_trees=by_size and q <= MANY and Capability.WEIGHTED_TREES in can,
            slice_seconds=SLICE_SHARE * (context.deadline.limit or np.inf),
            stores_objectives=folds.k <= MANY_FOLDS,
            streams_folds=folds.k > MANY_FOLDS,
            parts_of_fold=_parts_of_fold(folds.k, context.hands.at_once),
            gammas_at_once=max(CELLS_AT_ONCE // (context.shape[1] * folds.k), 1) if context.threads == 1 else 1,
        )._exclude_pairs_first(context, by_size)

    def _exclude_pairs_first(self, context: Context, by_size: bool) -> Plan:
        """Return the plan with work that may exclude pairs before trees of all folds, unless all pairs are needed."""
        if context.needs_all_pairs or context.folds.k > MANY_FOLDS:
            return self
        if context.data.q <= SMALL:
            return replace(self, cheap_nodes=FIRST_LOOK * ROUND_GROWTH)
        has_limit = bool(np.isfinite(context.deadline.at))
        return replace(self, bounds_before_trees=True, looks_first=has_limit and not by_size)

    def _adapt_to_method(self, context: Context, full: FoldProblem) -> Plan:
        """Return the plan with the search orders of the method.

        The plan is unchanged if its own search orders are requested without a solver or a budget. Otherwise MIOs are
        counted: each subproblem is solved by one MIO.
        """
        request, restricted = context.request, bool(context.data.restrictions.side_constraints)
        solver, budget, method = request.backend or NATIVE, request.mio_budget, request.method_used
        can, q, few_folds = full.capabilities, context.data.q, context.folds.k <= FEW_FOLDS
        orders = ORDERS_OF_METHODS.get(str(method), self.orders)
        solves_full_data = restricted or (method == Method.JOINT and solver == NATIVE and q <= SMALL)
        if orders == self.orders and solver == NATIVE and budget is None:
            return self
        return replace(
            self,
            orders=orders,
            order_of_pairs="given_pairs",
            solver=solver,
            counts_mios=True,
            waits_for_all=True,
            mio_budget=UNLIMITED if budget is None else int(budget),
            searches_folds_first=False,
            searches_all_folds=Capability.FOLD_SEARCHES in can and q > SMALL and few_folds,
            relaxes_folds=Capability.FOLD_RELAXATIONS in can and method != Method.GRID,
            relaxations_at_once=1 if few_folds else 8,
            leaves_folds_out=method == Method.JOINT and _can_leave_folds_out(context, full),
            grows_roots=restricted or method == Method.GRID,
            root_nodes=FIRST_NODES if restricted else 0,
            solves_subproblems=method != Method.BOUNDS,
            solves_all=method == Method.GRID,
            first_full_nodes=FIRST_LOOK * ROUND_GROWTH if solves_full_data else 0,
            first_node_limit=UNLIMITED,
            max_tries=1,
            single_sizes=(),
            weighs_held_out=False,
            bounds_reported=True,
        )

    @classmethod
    def _make_screened_tree_plan(cls, context: Context, full: FoldProblem) -> Plan:
        """Return the plan for problems with very many columns, which are solved from the rows."""
        folds, request = context.folds, context.request
        solves_all, searches_folds = request.method_used == Method.GRID, folds.k <= MANY_FOLDS_BY_ROWS
        return cls(
            orders=("first_answers", "given_pairs" if solves_all else "winner_first"),
            solves_all=solves_all,
            solver=request.backend or NATIVE,
            mio_budget=UNLIMITED if request.mio_budget is None else int(request.mio_budget),
            n_threads=context.threads,
            searches_all_folds=searches_folds and context.data.q > 0,
            holds_out=Capability.HOLD_OUT in full.capabilities,
            single_sizes=tuple(filter(full.has_one_support, context.grid.taus.tolist())),
            full_data_folds=min(folds.k, 8),
            first_node_limit=FIRST_LOOK // ROUND_GROWTH,
            node_growth=ROUND_GROWTH,
        )

    def switch_off_sources(self, sources: Iterable[str]) -> Plan:
        """Return the plan with some sources of bounds, given by name, switched off."""
        off = tuple(sources)
        changes: dict[str, Any] = {name: False for source in off for name in SETTINGS_OF_SOURCES.get(source, ())}
        return replace(self, sources_off=off, **changes)

    def uses(self, source: str) -> bool:
        """Return True if a source of bounds, given by name, is not switched off."""
        return source not in self.sources_off

    def node_limit(self, tries: int, n_folds: int = 1) -> int:
        """Return the node limit of a target after `tries` tries, for one tree in place of `n_folds` trees."""
        return int(min(self.first_node_limit * self.node_growth**tries * n_folds, UNLIMITED))

    def settings(self) -> tuple[PlanSetting, ...]:
        """Return all settings as the record stores them."""
        return tuple(
            PlanSetting(
                setting.name, _plain_value(getattr(self, setting.name)), setting.metadata["unit"],
                setting.metadata["reason"], bool(getattr(self, setting.name) == setting.default),
            )
            for setting in fields(self)
        )  # fmt: skip


def _plain_value(value: Any) -> Any:
    """Return a value in its JSON form: None for an infinite limit."""
    value = plain_scalar(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return None if is_number and value >= UNLIMITED else value


def _parts_of_fold(n_folds: int, n_workers: int) -> int:
    """Return the number of parts of the gammas of a fold: 10 folds on 8 workers take 1.07 times the ideal time."""
    return max(1, -(-PARTS_PER_WORKER * n_workers // n_folds)) if n_workers > 1 else 1


def _small_sizes(context: Context) -> tuple[int, ...]:
    """Return the sizes with few supports, under a limit: the smallest sizes, and that of all columns."""
    if not np.isfinite(context.deadline.at):
        return ()
    choice, taus = context.data.choice, context.grid.taus.tolist()
    sizes, n_others = choice.sizes(taus), len(choice.others)
    counts = [comb(n_others, min(size, n_others)) for size in sizes]
    n_small = next((t for t, count in enumerate(counts) if count > SUPPORTS_OF_SMALL), len(counts))
    return tuple(taus[t] for t, size in enumerate(sizes) if t < n_small or size >= n_others)


def _uses_size_order(context: Context) -> bool:
    """Return True if the sizes of a problem with many columns are solved fold by fold, the smallest first."""
    q, grid = context.data.q, context.grid
    has_few_pairs = context.needs_all_pairs or (len(grid.gammas) == 1 and q <= PATH_TREE_COLUMNS)
    is_limited = bool(np.isfinite(context.deadline.at))
    return q > SMALL and context.folds.k <= FEW_FOLDS and (is_limited or not has_few_pairs)


def _can_leave_folds_out(context: Context, full: FoldProblem) -> bool:
    """Return True if many small folds can all be bounded at once by fits of the full data."""
    folds = context.folds
    is_many = folds.k >= FEWEST_FOLDS * folds.times_scored and context.data.q <= PATH_TREE_COLUMNS
    return bool(is_many and folds.sizes.max() <= LARGEST_FOLD and Capability.LEFT_OUT_FITS in full.capabilities)
