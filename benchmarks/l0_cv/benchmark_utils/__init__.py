"""Plain numpy, shared by the objective and the peers: ridge fits of supports, and the best pair of a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
from benchopt import BaseSolver

CHUNK = 4096


class Fold:
    """Training rows of a fold about their means, by their moments, and the rows it holds out about the same means."""

    def __init__(self, X, y, test):
        mean, level = X[~test].mean(axis=0), y[~test].mean()
        self.X, self.y = X[~test] - mean, y[~test] - level
        self.Q, self.c, self.yy = self.X.T @ self.X, self.X.T @ self.y, float(self.y @ self.y)
        self.V, self.r = X[test] - mean, y[test] - level

    def objectives(self, supports, gamma):
        """Values of (gamma / 2) ||b||^2 + ||y - X b||^2 at the fits of supports of one size, (k, size)."""
        supports = np.asarray(supports, dtype=int).reshape(len(supports), -1)
        Q = self.Q[supports[:, :, None], supports[:, None, :]] + 0.5 * gamma * np.eye(supports.shape[1])
        c = self.c[supports]
        return self.yy - np.einsum("ki,ki->k", c, np.linalg.solve(Q, c[:, :, None])[:, :, 0])

    def held_out(self, support, gamma):
        """Sum of squares over the rows held out, of the fit of a support."""
        support = np.asarray(sorted(support), dtype=int)
        Q = self.Q[np.ix_(support, support)] + 0.5 * gamma * np.eye(len(support))
        return float(np.sum((self.r - self.V[:, support] @ np.linalg.solve(Q, self.c[support])) ** 2))

    def best(self, tau, gamma):
        """The best subset of at most `tau` columns, by trying all: none is better than the best of `tau` columns."""
        value, found = np.inf, ()
        subsets = list(combinations(range(self.X.shape[1]), tau))
        for k in range(0, len(subsets), CHUNK):
            values = self.objectives(subsets[k : k + CHUNK], gamma)
            if values.min() < value:
                value, found = float(values.min()), subsets[k + int(values.argmin())]
        return value, found


def folds_of(X, y, folds):
    """The folds of a column of labels, in the order of the labels."""
    return [Fold(X, y, folds == label) for label in np.unique(folds)]


def chosen(folds: Sequence[Fold], paths: Sequence[Sequence[Iterable[int]]], taus, gammas):
    """The pair of the grid whose ridge fits of a method's supports predict best: tau, gamma, supports by fold.

    `paths` holds for every fold supports in the order in which the method finds them; of a size tau it has the last one
    that is no larger.
    """

    def of_size(path, tau):
        return [tuple(support) for support in path if len(tuple(support)) <= tau][-1]

    def error(tau, gamma):
        return sum(fold.held_out(of_size(path, tau), gamma) for fold, path in zip(folds, paths, strict=True))

    tau, gamma = min(((tau, gamma) for tau in taus for gamma in gammas), key=lambda pair: error(*pair))
    return dict(tau=tau, gamma=gamma, supports=[of_size(path, tau) for path in paths], lower=0.0)


def by_path(path: Callable, X, y, folds, gammas, taus):
    """Run a method that makes a path of supports on the training rows of every fold, and choose among them."""
    made = folds_of(X, y, folds)
    return chosen(made, [path(fold.X, fold.y, max(taus)) for fold in made], taus, gammas)


class PathSolver(BaseSolver):
    """A method whose `supports_of(X, y, most)` makes a path of supports on the training rows of a fold."""

    def set_objective(self, **problem):
        self.problem = problem

    def warm_up(self):
        self.run_once()

    def run(self, _):
        self.result = by_path(self.supports_of, **self.problem)

    def get_result(self):
        return self.result
