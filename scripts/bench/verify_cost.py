"""CPU seconds of `verify` over those of the search, where columns are nearly dependent.

    python scripts/bench/verify_cost.py

The second of two runs counts, as the first one compiles. A ratio above 10 ends with exit code 1.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.search.api import cross_validate

MOST = 10.0
WORDS: dict[str, Any] = {"nonnegative": ("x0", "x2"), "nonpositive": "x4", "hierarchy": "x5=x0"}
SIGNS = Restrictions(**WORDS)


def main() -> int:
    """Print a line for each case; return the exit code."""
    worst = 0.0
    cases: tuple[tuple[str, int, int, float, dict[str, Any]], ...] = (
        ("27 x 7, signs", 27, 7, 1e6, {"gammas": [0.02, 0.1], "taus": range(8), "restrictions": SIGNS}),
        ("11 x 1, every gamma", 11, 1, 1e4, {"gammas": "0.001..10", "taus": [0, 1]}),
        ("27 x 3, every gamma", 27, 3, 1e4, {"gammas": "0.001..10", "taus": [0, 1, 2, 3]}),
    )
    for name, n, p, offset, how in cases:
        rng = np.random.default_rng(3)
        X = rng.normal(size=(n, p)) + offset * rng.choice([-1.0, 0.5, 1.0], size=p)
        data = Dataset.from_arrays(X, rng.normal(size=n))
        folds = make_folds("loo", data)
        for _ in range(2):
            moments = [time.process_time()]
            record = cross_validate(data, folds, scale="variance", intercept="none", threads=1, time_limit=10.0, **how)
            moments.append(time.process_time())
            report = verify(record, data, folds)
            moments.append(time.process_time())
            report.raise_if_failed()
        search, check = np.diff(moments)
        worst = max(worst, check / search)
        print(f"{name}: search {search:.2f} s, verify {check:.2f} s, ratio {check / search:.1f}", flush=True)
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
