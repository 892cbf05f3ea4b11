"""Plain numpy, shared by the objective and the peers: fits of supports with a ridge, and the best pair of a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
from benchopt import BaseSolver

CHUNK = 4096
STEPS = 200  # of Newton's method, at most
FLAT = 1e-12  # of the objective, by which its least value is no less


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


class FoldOfClasses(Fold):
    """The same with log losses of two classes, y being 0 or 1, and an intercept that is not penalised."""

    def __init__(self, X, y, test):
        self.X, self.y, self.V, self.r = X[~test], y[~test], X[test], y[test]

    def objectives(self, supports, gamma):
        """Values of (gamma / 2) ||b||^2 + sum log(1 + exp(-s (a + x'b))), s = 2y - 1, at the fits of supports."""
        return np.array([self._fit(support, gamma)[0] for support in supports])

    def held_out(self, support, gamma):
        """Sum of log losses over the rows held out, of the fit of a support."""
        theta = self._fit(support, gamma)[1]
        return float(log_losses(self.r, theta[0] + self.V[:, sorted(support)] @ theta[1:]).sum())

    def _fit(self, support, gamma):
        """Least value and (intercept, coefficients) by Newton's method, steps halved while the objective rises."""
        Z = np.column_stack([np.ones(len(self.y)), self.X[:, sorted(support)]])
        ridge = gamma * np.r_[0.0, np.ones(Z.shape[1] - 1)]

        def objective(theta):
            return float(log_losses(self.y, Z @ theta).sum() + 0.5 * ridge @ theta**2)

        theta = np.zeros(Z.shape[1])
        theta[0] = np.log(self.y.mean() / (1.0 - self.y.mean()))
        value = objective(theta)
        for _ in range(STEPS):
            share = 0.5 * (1.0 + np.tanh(0.5 * (Z @ theta)))
            slope = Z.T @ (share - self.y) + ridge * theta
            step = np.linalg.solve((Z * (share * (1.0 - share))[:, None]).T @ Z + np.diag(ridge), slope)
            if slope @ step <= FLAT * value:
                return value - 0.5 * slope @ step, theta - step  # here a step squares the distance
            length = 1.0
            while objective(theta - length * step) > value - 0.25 * length * (slope @ step) and length > 1e-10:
                length *= 0.5
            theta = theta - length * step
            value = objective(theta)
        return value, theta


def log_losses(y, predictors):
    """Log losses of classes 0 and 1."""
    return np.logaddexp(0.0, np.where(y > 0.5, -predictors, predictors))


def folds_of(X, y, folds, loss="squared"):
    """The folds of a column of labels, in the order of the labels."""
    kind = FoldOfClasses if loss == "logistic" else Fold
    return [kind(X, y, folds == label) for label in np.unique(folds)]


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


def by_path(path: Callable, X, y, folds, gammas, taus, loss):
    """Run a method that makes a path of supports on the training rows of every fold, and choose among them."""
    made = folds_of(X, y, folds, loss)
    return chosen(made, [path(fold.X, fold.y, max(taus)) for fold in made], taus, gammas)


class PathSolver(BaseSolver):
    """A method whose `supports_of(X, y, most)` makes a path of supports on the training rows of a fold.

    `of_classes(X, y, most)` does with log losses, y being 0 or 1; a method without it knows squares alone.
    """

    of_classes = None

    def skip(self, **problem):
        knows = problem["loss"] == "squared" or self.of_classes is not None
        return not knows, None if knows else "has no form for two classes"

    def set_objective(self, **problem):
        self.problem = problem

    def warm_up(self):
        self.run_once()

    def run(self, _):
        path = self.of_classes if self.problem["loss"] == "logistic" else self.supports_of
        self.result = by_path(path, **self.problem)

    def get_result(self):
        return self.result
