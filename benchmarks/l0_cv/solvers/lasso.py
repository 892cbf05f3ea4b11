import numpy as np
from benchmark_utils import PathSolver
from sklearn.linear_model import LogisticRegression, lasso_path


class Solver(PathSolver):
    """Supports along the lasso's path, fitted by ridge regression."""

    name = "lasso"
    requirements = ["scikit-learn>=1.8"]
    test_config = {"objective": {"loss": "logistic"}}

    @staticmethod
    def supports_of(X, y, most):
        """Supports along the path from the largest penalty down, until one is larger than `most`."""
        alphas = np.abs(X.T @ y).max() / len(y) * np.logspace(0.0, -4.0, 200)
        _, path, _ = lasso_path(X, y, alphas=alphas, max_iter=20_000)
        return until(most, path.T)

    @staticmethod
    def of_classes(X, y, most):
        """The same along 50 weights of the L1 penalty of logistic regression, by liblinear."""
        least = 1.0 / np.abs(X.T @ (y - y.mean())).max()
        model = LogisticRegression(l1_ratio=1.0, solver="liblinear", intercept_scaling=100.0, random_state=0)
        path = (model.set_params(C=weight).fit(X, y).coef_[0] for weight in least * np.logspace(0.0, 3.0, 50))
        return until(most, path)


def until(most, path):
    """The supports of a path, until one is larger than `most`."""
    found = [()]
    for beta in path:
        support = tuple(np.flatnonzero(beta))
        if len(support) > most:
            break
        found.append(support)
    return sorted(found, key=len)
