"""Instances on which branch-and-bound has to work: many correlated columns, and more columns than rows.

python scripts/bench/hard.py [--cases housing2,diabetes64,wide] [--threads N]
python scripts/bench/hard.py --cases housing2-small-gamma --time-limit 300
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from _common import environment, table
from _runs import HEAD, held, run, warm_up, wide

from sparsecv_mio.data.dataset import Dataset

Case = tuple[str, Callable[[], Dataset], str, tuple[float, ...], range]
CASES: dict[str, list[Case]] = {
    "housing2": [("housing2", lambda: held("housing2"), "10", (1.0,), range(1, 11))],
    "diabetes64": [("diabetes64", lambda: held("diabetes64"), "10", (g,), range(1, 13)) for g in (0.1, 1.0)],
    "wide": [("synthetic 200 x 1000", wide, "5", (1.0,), range(8, 13))],
    "housing2-small-gamma": [("housing2", lambda: held("housing2"), "10", (0.01,), range(1, 11))],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="housing2,diabetes64,wide", help=f"of {', '.join(CASES)}")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--time-limit", type=float, default=None, help="seconds for each run")
    parser.add_argument("--gap", type=float, default=1e-4)
    options = parser.parse_args()
    print(environment())
    warm_up()
    rows = []
    for case in options.cases.split(","):
        for name, load, spec, gammas, taus in CASES[case]:
            limits = {"gap": options.gap, "threads": options.threads, "time_limit": options.time_limit}
            rows.append(run(name, load(), spec, gammas, taus, **limits))
            print(f"{name} gamma {gammas[0]:g}: {rows[-1][4]}, {rows[-1][-1]} s", file=sys.stderr, flush=True)
    print(table(HEAD, rows))
    proved = sum(row[4] == "proved" for row in rows)
    print(f"{proved} of {len(rows)} proved, {sum(float(str(row[-1])) for row in rows):.1f} s together")
    return 0 if proved == len(rows) else 3


if __name__ == "__main__":
    sys.exit(main())
