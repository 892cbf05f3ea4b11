import numpy as np
from benchmark_utils import PathSolver
from sklearn.linear_model import lasso_path


class Solver(PathSolver):
    """Supports along the lasso's path, fitted by ridge regression."""

    name = "lasso"
    requirements = ["scikit-learn"]

    @staticmethod
    def supports_of(X, y, most):
        """Supports along the path from the largest penalty down, until one is larger than `most`."""
        alphas = np.abs(X.T @ y).max() / len(y) * np.logspace(0.0, -4.0, 200)
        _, path, _ = lasso_path(X, y, alphas=alphas, max_iter=20_000)
        found = [()]
        for beta in path.T:
            support = tuple(np.flatnonzero(beta))
            if len(support) > most:
                break
            found.append(support)
        return sorted(found, key=len)
