from pathlib import Path

import numpy as np
import pandas as pd
from benchopt import BaseDataset

INSTANCES = Path(__file__).resolve().parents[3] / "instances"
TARGETS = {"prostate": "lpsa", "diabetes": "y", "autompg": "mpg", "housing": "medv", "servo": "class"}


class Dataset(BaseDataset):
    """Tables of this repository, and shuffled folds."""

    name = "tables"
    parameters = {"table": list(TARGETS), "k": [10]}
    requirements = ["pandas"]

    def get_data(self):
        frame = pd.read_csv(INSTANCES / f"{self.table}.csv")
        y = frame.pop(TARGETS[self.table]).to_numpy(dtype=float)
        rng = np.random.default_rng(self.get_seed(use_repetition=True, use_objective=False, use_solver=False))
        return dict(X=frame.to_numpy(dtype=float), y=y, folds=rng.permutation(len(y)) % self.k)
