from benchopt import BaseSolver

from sparsecv_mio import Dataset, cross_validate
from sparsecv_mio.data.folds import folds_of


class Solver(BaseSolver):
    """The certified search of this repository, on one thread."""

    name = "sparsecv"
    parameters = {"gap": [0.0, 0.01], "method": ["auto"]}
    requirements = ["pip::sparsecv-mio"]
    test_config = {"objective": {"loss": "logistic"}}

    def set_objective(self, X, y, folds, gammas, taus, loss):
        self.data = Dataset.from_arrays(X, y)
        self.plan = folds_of(folds, self.data)
        self.gammas, self.taus, self.loss = gammas, taus, loss

    def warm_up(self):
        self.run_once()

    def run(self, _):
        self.record = cross_validate(
            self.data, self.plan, gammas=self.gammas, taus=self.taus, scale="none", gap=self.gap, method=self.method,
            threads=1, loss=self.loss,
        )  # fmt: skip

    def get_result(self):
        place = {name: j for j, name in enumerate(self.data.names)}
        supports = [tuple(place[name] for name in one.support) for one in self.record.chosen_folds]
        return dict(tau=self.record.tau, gamma=self.record.gamma, supports=supports, lower=self.record.lower)
