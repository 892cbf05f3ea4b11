import numpy as np
from benchmark_utils import PathSolver


class Solver(PathSolver):
    """Forward selection: the column that lowers the squared error of the fit most, one after the other."""

    name = "forward"
    requirements = []

    @staticmethod
    def supports_of(X, y, most):
        """The supports of all sizes."""
        found, left, residual = [()], X.copy(), y.copy()
        for _ in range(most):
            length = np.linalg.norm(left, axis=0)
            gain = np.where(length > 1e-8, np.abs(left.T @ residual) / np.maximum(length, 1e-8), -1.0)
            gain[list(found[-1])] = -1.0
            j = int(gain.argmax())
            direction = left[:, j] / length[j]
            residual = residual - direction * (direction @ residual)
            left = left - np.outer(direction, direction @ left)
            found.append((*found[-1], j))
        return found
