import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Rows N(0, Sigma), Sigma_ij = rho^|i-j|, ones at evenly spaced columns, and shuffled folds."""

    name = "simulated"
    parameters = {"n, p, support": [(100, 20, 5)], "rho": [0.5], "snr": [2.0], "k": [5]}
    test_parameters = {"n, p, support": [(30, 6, 2)]}

    def get_data(self):
        rng = np.random.default_rng(self.get_seed(use_repetition=True, use_objective=False, use_solver=False))
        X = rng.standard_normal((self.n, self.p))
        for j in range(1, self.p):
            X[:, j] = self.rho * X[:, j - 1] + np.sqrt(1.0 - self.rho**2) * X[:, j]
        signal = X[:, np.linspace(0, self.p - 1, self.support).round().astype(int)].sum(axis=1)
        y = signal + signal.std() / np.sqrt(self.snr) * rng.standard_normal(self.n)
        return dict(X=X, y=y, folds=rng.permutation(self.n) % self.k)
