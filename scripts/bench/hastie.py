"""Best subset ridge, lasso, relaxed lasso and forward selection in the design of Hastie, Tibshirani and Tibshirani.

    python scripts/bench/hastie.py run --out FOLDER [--repeats 3] [--sizes low medium high-5 high-10] [...]
    python scripts/bench/hastie.py report --out FOLDER [--results results]

Best Subset, Forward Stepwise or Lasso? Statistical Science 35 (2020). Rows of N(0, Sigma), Sigma_ij = rho^|i-j|;
(n, p, s) = (100, 10, 5), (500, 100, 5), (50, 1000, 5), (100, 1000, 10); coefficients of types 1, 2, 3 and 5; rho 0,
0.35, 0.7; ten signal-to-noise ratios from 0.05 to 6. Each method is tuned on n further rows, as in the paper, and by
ten folds.

Ours runs under a limit on processor time (`--validation-limit`, `--cv-limit`); the others need none. `run` is a batch:
what is done is never done again, so that it can be stopped, and carried on with more repeats. Its tasks come in the
order of what matters most: validation, then folds, repeat by repeat.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import zlib
from collections.abc import Iterator
from typing import Any

from _batches import add_run_options, carry_on
from _common import parser_of

from sparsecv_mio.batch.batch_plan import Task, make_tasks

SIZES = {"low": (100, 10, 5), "medium": (500, 100, 5), "high-5": (50, 1000, 5), "high-10": (100, 1000, 10)}
BETAS = {"1": "even", "2": "first", "3": "decay", "5": "weak"}
RHOS = (0.0, 0.35, 0.7)
SNRS = (0.05, 0.09, 0.14, 0.25, 0.42, 0.71, 1.22, 2.07, 3.52, 6.0)
TUNINGS = ("validation", "folds")


def draw_of(size: str, kind: str, rho: float, snr: float, repeat: int) -> int:
    """Return the number of a draw, of its own for every setting and repeat, whatever else is asked for."""
    return 1000 * (zlib.crc32(f"{size} {kind} {rho:g} {snr:g}".encode()) % 1_000_000) + repeat


def plan_of(ask: argparse.Namespace, tuning: str, repeat: int) -> dict[str, Any]:
    """Return the plan of one tuning and one repeat."""
    validated = tuning == "validation"
    data = [
        {
            "design": "toeplitz", "name": f"hastie {size}", "n": n, "p": p, "support": s, "beta": BETAS[kind],
            "rho": rho, "snr": snr, "draw": draw_of(size, kind, rho, snr, repeat), "validation": n if validated else 0,
        }
        for size, (n, p, s) in SIZES.items() if size in ask.sizes
        for kind, rho, snr in itertools.product(ask.beta, ask.rho, ask.snr)
    ]  # fmt: skip
    vary: dict[str, Any] = {"estimator": ask.methods if validated else ask.cv_methods}
    if validated:
        vary |= {"folds": "column:validation", "refit": "training", "cpu_limit": ask.validation_limit}
    else:
        vary |= {"folds": "10", "one_se": "both", "cpu_limit": ask.cv_limit}
    return {"data": data, "vary": vary}


def phases(ask: argparse.Namespace) -> Iterator[list[Task]]:
    """Yield the tasks of each tuning and repeat, what matters most first."""
    for tuning in ask.tunings:
        for repeat in range(ask.repeats):
            yield make_tasks(plan_of(ask, tuning, repeat))


def main() -> int:
    """Run the study, or report what is there."""
    parser = parser_of(__doc__)
    parser.add_argument("do", choices=("run", "report"))
    add_run_options(parser)
    parser.add_argument("--repeats", type=int, default=3, help="draws of each setting [3]")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--beta", nargs="+", choices=BETAS, default=list(BETAS), help="types of coefficients")
    parser.add_argument("--rho", nargs="+", type=float, default=list(RHOS))
    parser.add_argument("--snr", nargs="+", type=float, default=list(SNRS))
    parser.add_argument("--tunings", nargs="+", choices=TUNINGS, default=list(TUNINGS))
    parser.add_argument("--methods", nargs="+", default=["sparsecv", "lasso", "relaxed-lasso", "forward"])
    parser.add_argument("--cv-methods", nargs="+", default=["sparsecv", "lasso", "relaxed-lasso", "abess"])
    parser.add_argument("--validation-limit", type=float, default=0.2, help="seconds of the processor a run of ours")
    parser.add_argument("--cv-limit", type=float, default=0.6, help="the same, of ten folds")
    ask = parser.parse_args()
    if ask.do == "run":
        return carry_on(phases(ask), ask)
    from _hastie_report import report

    return report(ask)


if __name__ == "__main__":
    sys.exit(main())
