"""Bounds on data with far more columns than rows: riboflavin (n = 71, p = 4,088), five folds, tau 2 to 24, gamma 1.

The data are not committed: `scripts/instances/download.py` fetches them; SPARSECV_INSTANCES names their folder.

    SPARSECV_INSTANCES=DIR python scripts/bench/bounds_wide.py [--out FILE]
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
from _common import deliver, environment, table

from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.data.standard import standardize


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=None)
    options = parser.parse_args()
    path = Path(os.environ.get("SPARSECV_INSTANCES", "instances")) / "riboflavin.csv"
    if not path.exists():
        print(f"{path} is missing: set SPARSECV_INSTANCES", file=sys.stderr)
        return 2
    data = standardize(read_dataset(path, "y"))
    folds = make_folds("5", data.dataset)
    begin = time.perf_counter()
    found = compute_bounds(data, folds, [1.0], range(2, 25))
    seconds = time.perf_counter() - begin
    rows: list[list[object]] = []
    widths = []
    for t, tau in enumerate(found.taus):
        gap = (found.objective_upper[0, t] - found.objective_lower[0, t]) / found.objective_upper[0, t]
        ends, middle = found.cv_interval(0, t), found.cv_estimate(0, t)
        widths.append((ends.upper - ends.lower) / middle)
        rows.append(
            [tau, float(gap.mean()), float(gap.max()), ends.lower, ends.upper, middle, widths[-1], found.won(0, t)]
        )
    worst = max(float(row[2]) for row in rows)  # type: ignore[arg-type]
    head = ["tau", "mean gap", "largest gap", "lower", "upper", "estimate", "width / estimate", "bound"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    text = "\n".join(
        [
            "# Bounds with n = 71 rows and p = 4,088 columns, 5 folds, gamma 1",
            "",
            environment(),
            "",
            f"{seconds:.1f} s on one thread, {peak:.2f} GB at the peak. Largest (ubar - D) / ubar over folds and tau: "
            f"{worst:.4f}. Median width over the estimate of h: {np.median(widths):.2f}: the intervals are wide.",
            "",
            table(head, rows),
            "",
        ]
    )
    deliver(text, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
