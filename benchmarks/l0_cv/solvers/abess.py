import numpy as np
from abess import LinearRegression
from benchmark_utils import by_path
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Adaptive best-subset selection (splicing), every size by itself."""

    name = "abess"
    requirements = ["pip::abess"]

    def set_objective(self, **problem):
        self.problem = problem

    def warm_up(self):
        self.run_once()

    def run(self, _):
        self.result = by_path(supports_of, **self.problem)

    def get_result(self):
        return self.result


def supports_of(X, y, most):
    """The supports of all sizes."""
    found = [()]
    for size in range(1, most + 1):
        model = LinearRegression(support_size=size, fit_intercept=False, thread=1)
        found.append(tuple(np.flatnonzero(model.fit(X, y).coef_)))
    return found
