import numpy as np
from benchmark_utils import by_path
from benchopt import BaseSolver
from sklearn.linear_model import orthogonal_mp


class Solver(BaseSolver):
    """Orthogonal matching pursuit."""

    name = "omp"
    requirements = ["scikit-learn"]

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
    path = orthogonal_mp(X, y, n_nonzero_coefs=most, return_path=True)
    return [(), *(tuple(np.flatnonzero(beta)) for beta in np.reshape(path, (X.shape[1], -1)).T)]
