"""How many models are as good as the best one, and what listing them costs.

    python scripts/bench/near_optimal.py --out build/near_optimal.md

Diabetes, housing and autompg at the pair that cross-validation chooses (10 folds, the default grid): every support of
that size within 1, 2 and 5% of the least CV error, the same support in every fold, and of the least training objective.
Then diabetes64 (442 x 64), tau 10, within 1% of the least training objective, at several gammas and at that which
cross-validation chooses. `cpu` are processor seconds of the call, kernels compiled, the choice of the pair not counted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from _common import INSTANCES, TARGETS, deliver, environment, parser_of, table

from sparsecv_mio.certificate.fit_records import NearRecord
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.search.api import cross_validate

SMALL = ("diabetes", "housing", "autompg")
SHARES = (0.01, 0.02, 0.05)
GAMMAS = (0.01, 0.05, 0.1, 1.0, 10.0)
CHOICE_SECONDS = 20.0  # of the cross-validation on diabetes64
MOST_NAMES = 12


@dataclass(frozen=True)
class Listed:
    """A list and what it cost."""

    record: NearRecord
    seconds: float

    def cells(self) -> list[str]:
        """Models, always, never, sometimes, replacements, status, nodes, seconds."""
        (size,) = self.record.sizes
        sometimes = self.record.data.p - len(size.always) - len(size.never)
        pair = next(iter(size.replacements), None)
        swapped = "" if pair is None else f"{pair.feature} / {pair.other} ({pair.pairs})"
        status = self.record.status if size.complete else f"{self.record.status}, cut"
        return [
            f"{size.models:,}", _names(size.always), str(len(size.never)), str(sometimes), swapped, status,
            f"{self.record.work.nodes:,}", f"{self.seconds:.2f}",
        ]  # fmt: skip


HEAD = ["models", "in all", "in none", "in some", "most exchanged", "status", "nodes", "cpu"]


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} features"


def listed(data: Dataset, gamma: float, tau: int, by: str, within: float) -> Listed:
    """Make one list of all models."""
    began = time.process_time()
    record = near_optimal(data, "10", gamma=gamma, taus=tau, by=by, within=within, most=None)
    return Listed(record, time.process_time() - began)


def at_the_chosen_pair() -> str:
    """Return the table of three data sets."""
    rows = []
    for name in SMALL:
        data = read_dataset(INSTANCES / f"{name}.csv", TARGETS[name])
        chosen = cross_validate(data, make_folds("10", data), gammas=None, taus=None)
        pair = f"{name}, {data.n} x {data.p}", f"{chosen.gamma:.4g}", str(chosen.tau)
        for by in ("cv", "objective"):
            for within in SHARES:
                found = listed(data, chosen.gamma, chosen.tau, by, within)
                rows.append([*pair, by, f"{100 * within:g}%", *found.cells()])
    return table(["data", "gamma", "tau", "by", "within", *HEAD], rows)


def diabetes64() -> str:
    """Return the table of tau 10, within 1%."""
    data = read_dataset(INSTANCES / "diabetes64.csv", "y")
    folds = make_folds("10", data)
    chosen = cross_validate(data, folds, gammas=None, taus=[10], time_limit=CHOICE_SECONDS)
    rows = []
    for gamma in sorted({*GAMMAS, chosen.gamma}):
        mark = " (chosen)" if gamma == chosen.gamma else ""
        rows.append([f"{gamma:.4g}{mark}", *listed(data, gamma, 10, "objective", 0.01).cells()])
    return table(["gamma", *HEAD], rows)


def main() -> None:
    """Make both tables."""
    parser = parser_of(__doc__, out=True)
    place = parser.parse_args().out
    small = read_dataset(INSTANCES / "diabetes.csv", "y")
    for by in ("cv", "objective"):
        listed(small, 0.1, 4, by, 0.01)
    listed(read_dataset(INSTANCES / "diabetes64.csv", "y"), 1.0, 3, "objective", 0.01)
    parts = [
        "# Models as good as the best one", environment(), "## At the pair that cross-validation chooses",
        at_the_chosen_pair(), "## 442 x 64, tau 10, within 1% of the least training objective", diabetes64(),
    ]  # fmt: skip
    deliver("\n\n".join(parts) + "\n", place)


if __name__ == "__main__":
    main()
