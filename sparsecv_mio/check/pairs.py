"""The statements of a proof that carry a tree to the folds of a pair (gamma, tau)."""

from typing import Any

import numpy as np

from .arithmetic import Array
from .folds import Folds
from .reading import integers, need, support
from .tree import Tree


class Cells:
    """Intervals of h_N of the folds of one pair, in scaled units; they only tighten."""

    def __init__(self, folds: Folds, gamma: tuple[int, float], tau: int) -> None:
        self.folds, (self.gamma, self.value), self.tau = folds, gamma, tau
        self.low = folds.design.kind.of(np.zeros(len(folds.left)))
        self.high = self.low + np.inf

    def add(self, part: dict[str, Any]) -> None:
        """Take in one statement of the proof about some folds."""
        mine, word = integers(part.get("folds", [*range(len(self.low))]), 0, len(self.low), "folds"), part["by"]
        need(len(set(mine)) == len(mine), "a statement names a fold twice")
        if word == "own":
            for fold, name in zip(mine, part["trees"], strict=True):
                tree = self.tree(name, fold)
                self._decide([fold], tree, tree.above[self.tau - tree.first])
        elif word == "list":
            tree = self.tree(part["tree"], -1)
            above = tree.above[self.tau - tree.first]
            self._decide(mine, tree, self.folds.left_out_thresholds(self.value, above, mine))
        else:
            need(word == "loss", f"{word!r} is no statement of this format")
            self._loss(mine, self.tree(part["tree"], -1), part)
        self.folds.by[word] += len(mine)

    def tree(self, name: Any, rows: int) -> Tree:
        """Return a tree of these rows, of this gamma, whose range holds the size; or refuse."""
        tree = self.folds.trees[integers([name], 0, len(self.folds.trees), "a tree that is named")[0]]
        need(tree.rows == rows and tree.gamma == self.gamma, "a statement names a tree of other rows or another gamma")
        need(tree.first <= self.tau < tree.first + len(tree.above), "a statement names a tree of other sizes")
        return tree

    def least(self, tree: Tree) -> Any:
        """Return a lower bound of the objective on all rows of all supports of the size: those listed, and others."""
        above, supports = tree.above[self.tau - tree.first], tree.listed[self.tau]
        return min([above, *self.folds.objectives(self.value, supports)[0]]) if supports else above

    def _decide(self, mine: list[int], tree: Tree, above: Array) -> None:
        """Enclose h_N by all listed supports that may be optimal, where no other one can be."""
        need(tree.listed[self.tau], "no support is listed where one is needed")
        scores = self.folds.scores(self.value, mine, tree.listed[self.tau])
        best = scores.upper.min(1)
        for fold, decided in zip(mine, (best < above).tolist(), strict=True):
            need(decided, f"the list of a tree does not decide fold {fold}")
        optimal = ~(scores.lower > best[:, None]).astype(bool)
        low, high = np.where(optimal, scores.held_low, np.inf).min(1), np.where(optimal, scores.held_high, 0).max(1)
        self.low[mine], self.high[mine] = np.maximum(self.low[mine], low), np.minimum(self.high[mine], high)

    def _loss(self, mine: list[int], tree: Tree, part: dict[str, Any]) -> None:
        """Bound h_N by what the fit without N leaves on all rows, or where its support is listed by its own error."""
        folds, u = self.folds, self.folds.design.kind.u
        chosen = [support(values, folds.design.q) for values in part["supports"]]
        need(all(len(found) <= self.tau for found in chosen), "a support is larger than tau")
        which = np.array(integers(part.get("which", [0] * len(mine)), 0, len(chosen), "the supports of a statement"))
        need(len(which) == len(mine), "a statement needs a support for each of its folds")
        upper, above, listed = 0 * self.low[mine], tree.above[self.tau - tree.first], tree.listed[self.tau]
        for size in {len(found) for found in chosen}:
            those = [i for i, found in enumerate(chosen) if len(found) == size]
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
