from math import comb

import numpy as np
from benchmark_utils import folds_of
from benchopt import BaseObjective

MOST_SUBSETS = {"squared": 200_000, "logistic": 20_000}  # of which all are tried
SLACK = 1e-9


class Objective(BaseObjective):
    """Choose (tau, gamma) of best-subset ridge or logistic regression by cross-validation.

    The fits of fold j minimise (gamma / 2) ||b||^2 + ||y - X b||^2, ||b||_0 <= tau, on the rows outside fold j, about
    their means; h(tau, gamma) is the mean squared error of all rows, each predicted by the fit without its fold. With
    loss "logistic" a target above its median is class 1, log losses stand in place of squares, and every fit has an
    intercept.

    A solver returns a pair, the supports of its folds and a lower bound on the least h of the grid (0 if it has none).
    Nothing else of it counts: here the supports are fitted again.

    value     h of these fits. Supports that are not the best may predict better, or worse.
    gap       (h - lower) / h
    tau, gamma
    verified  1 if nothing refutes that these are the best subsets of their size in every fold and that the bound holds:
              all subsets are tried where they are few, and with them the bound at every pair; else all exchanges and
              additions of one column. 0 if something does.
    checked   1 if all subsets were tried, 0 if only exchanges.
    """

    name = "Cross-validation of best-subset ridge and logistic regression"
    url = "https://github.com/benchopt/benchmark_l0_cv"
    min_benchopt_version = "1.8"
    sampling_strategy = "run_once"
    parameters = {"most": [6], "gammas": ["0.01,0.1,1"], "loss": ["squared"]}
    test_config = {"most": 3}

    def set_data(self, X, y, folds):
        """Take columns of mean 0 and length 1; of two classes a target of 0 and 1."""
        X = X - X.mean(axis=0)
        y = (y > np.median(y)).astype(float) if self.loss == "logistic" else y
        self.X, self.y, self.labels = X / np.linalg.norm(X, axis=0), y, folds
        self.folds = folds_of(self.X, y, folds, self.loss)
        self.taus = list(range(1, min(self.most, X.shape[1]) + 1))
        self.grid = [float(word) for word in self.gammas.split(",")]

    def get_objective(self):
        return dict(X=self.X, y=self.y, folds=self.labels, gammas=self.grid, taus=self.taus, loss=self.loss)

    def evaluate_result(self, tau, gamma, supports, lower):
        supports = [tuple(sorted(set(support))) for support in supports]
        if tau not in self.taus or gamma not in self.grid or len(supports) != len(self.folds):
            raise ValueError("the pair is not of the grid, or a fold has no support")
        if any(len(support) > tau for support in supports):
            raise ValueError(f"a support has more than {tau} columns")
        errors = [fold.held_out(one, gamma) for fold, one in zip(self.folds, supports, strict=True)]
        h = sum(errors) / len(self.y)
        p, pairs = self.X.shape[1], len(self.folds) * len(self.grid)
        few = pairs * sum(comb(p, size) for size in self.taus) <= MOST_SUBSETS[self.loss]
        holds = self._all_tried(tau, gamma, supports, lower) if few else self._exchanged(gamma, tau, supports)
        gap = (h - lower) / h
        return dict(value=h, gap=gap, tau=tau, gamma=gamma, verified=float(holds and gap >= -SLACK), checked=float(few))

    def _all_tried(self, tau, gamma, supports, lower):
        best = [fold.best(tau, gamma)[0] for fold in self.folds]
        mine = [self._value(fold, one, gamma) for fold, one in zip(self.folds, supports, strict=True)]
        if any(own > value * (1 + SLACK) for own, value in zip(mine, best, strict=True)):
            return False
        least = min(
            sum(fold.held_out(fold.best(size, weight)[1], weight) for fold in self.folds)
            for size in self.taus for weight in self.grid
        )  # fmt: skip
        return lower <= least / len(self.y) * (1 + SLACK)

    def _exchanged(self, gamma, tau, supports):
        for fold, support in zip(self.folds, supports, strict=True):
            outside = [j for j in range(self.X.shape[1]) if j not in support]
            near = [[*(set(support) - {i}), j] for i in support for j in outside]
            larger = [[*support, j] for j in outside] if len(support) < tau else []
            value = self._value(fold, support, gamma)
            if any(one and fold.objectives(one, gamma).min() < value * (1 - SLACK) for one in (near, larger)):
                return False
        return True

    @staticmethod
    def _value(fold, support, gamma):
        return float(fold.objectives([support], gamma)[0])

    def get_one_result(self):
        return dict(tau=1, gamma=self.grid[0], supports=[(0,)] * len(self.folds), lower=0.0)
