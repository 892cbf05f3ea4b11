import numpy as np
from benchmark_utils import PathSolver
from sklearn.linear_model import orthogonal_mp


class Solver(PathSolver):
    """Orthogonal matching pursuit."""

    name = "omp"
    requirements = ["scikit-learn"]

    @staticmethod
    def supports_of(X, y, most):
        """The supports of all sizes."""
        path = orthogonal_mp(X, y, n_nonzero_coefs=most, return_path=True)
        return [(), *(tuple(np.flatnonzero(beta)) for beta in np.reshape(path, (X.shape[1], -1)).T)]
