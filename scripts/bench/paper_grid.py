"""The grid of the paper's tables: four data sets, leave-one-out and blocks of ten rows, seven gammas, every tau.

56 runs, each proved without a gap (--gap 0), in one process with compiled kernels. The paper reports 5,501 minutes for
the leave-one-out half by grid search with a commercial solver.

    python scripts/bench/paper_grid.py [--threads N] [--data diabetes,servo] [--folds loo,blocks:10]
"""

from __future__ import annotations

import argparse
import sys

from _common import environment, table
from _runs import HEAD, held, run, warm_up

GAMMAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--data", default="diabetes,housing,servo,autompg")
    parser.add_argument("--folds", default="loo,blocks:10")
    options = parser.parse_args()
    print(environment())
    warm_up()
    rows = []
    for name in options.data.split(","):
        data = held(name)
        taus = range(1, data.p + 1)
        for spec in options.folds.split(","):
            for gamma in GAMMAS:
                rows.append(run(name, data, spec, (gamma,), taus, gap=0.0, threads=options.threads))
                print(f"{name} {spec} gamma {gamma:g}: {rows[-1][4]}, {rows[-1][-1]} s", file=sys.stderr, flush=True)
    print(table(HEAD, rows))
    proved = sum(row[4] == "proved" for row in rows)
    print(f"{proved} of {len(rows)} proved, {sum(float(str(row[-1])) for row in rows):.1f} s together")
    return 0 if proved == len(rows) else 3


if __name__ == "__main__":
    sys.exit(main())
