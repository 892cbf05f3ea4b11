"""How far the CV errors of undecided pairs are from the truth: ten data sets, every pair of the grid.

    python scripts/bench/estimates.py --out build/estimates.md

`default` is a run to the default gap, `early` one that stops after its first answers (no MIO). Truth is the same
question with `--gap 0`. A difference is `estimate / truth - 1`, over the pairs that are marked as estimates; one-sided
estimates would have a mean as large as the mean of their absolute values.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from _common import INSTANCES, deliver, environment, synthetic, table

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.search.api import cross_validate

FILES = {
    "diabetes": ("y", 10), "diabetes11": ("y", 11), "housing": ("medv", 13), "prostate": ("lpsa", 8),
    "servo": ("class", 12), "autompg": ("mpg", 10),
}  # fmt: skip
SYNTHETIC = {
    "n 60, p 12": (60, 12, 4, 5.0),
    "n 100, p 20": (100, 20, 5, 1.0),
    "n 40, p 15": (40, 15, 4, 0.5),
    "n 200, p 45": (200, 45, 4, 5.0),
}
GAMMAS = np.geomspace(1e-3, 10.0, 15).tolist()


def problems() -> Iterator[tuple[str, Dataset, int]]:
    """Name, data and largest tau."""
    for name, (target, most) in FILES.items():
        yield name, read_dataset(INSTANCES / f"{name}.csv", target=target), most
    for seed, (name, (n, p, k, snr)) in enumerate(SYNTHETIC.items()):
        X, y = synthetic(n, p, k, seed, snr=snr)
        yield name, Dataset.from_arrays(X, y), 10 if p < 40 else 5


def solved(data: Dataset, spec: str, most: int, **options: object) -> Record:
    """A run over every tau up to `most` and fifteen gammas."""
    plan = make_folds(spec, data)
    return cross_validate(data, plan, gammas=GAMMAS, taus=range(1, min(most, data.p) + 1), threads=1, **options)  # type: ignore[arg-type]


def differences(record: Record, truth: dict[tuple[float, int], float]) -> np.ndarray:
    """`estimate / truth - 1` of the undecided pairs."""
    rows = [row for row in record.table if row.estimate]
    return np.array([row.cv_error / truth[row.gamma, row.tau] - 1.0 for row in rows])


def main() -> None:
    """Run all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out")
    parser.add_argument("--folds", nargs="+", default=["10", "loo"])
    ask = parser.parse_args()
    rows: list[list[object]] = []
    for name, data, most in problems():
        for spec in ask.folds:
            exact = solved(data, spec, most, gap=0.0, method="rounds")
            truth = {(row.gamma, row.tau): row.cv_error for row in exact.table if not row.estimate}
            assert len(truth) == len(exact.table), "truth is decided"
            early = {"method": "joint", "mio_budget": 0}
            for kind, options in (("default", {}), ("early", early)):
                found = differences(solved(data, spec, most, **options), truth)
                if len(found):
                    size = np.abs(found)
                    figures = found.mean(), size.mean(), found.min(), found.max()
                    percent = [round(100.0 * float(figure), 4) + 0.0 for figure in figures]
                    sides = int((found > 1e-9).sum()), int((found < -1e-9).sum())
                    rows.append([name, spec, kind, len(found), *percent, *sides])
                else:
                    rows.append([name, spec, kind, 0, *[0.0] * 4, 0, 0])
                print(*rows[-1], flush=True)
    head = ["data", "folds", "run", "pairs", "mean %", "mean abs %", "least %", "most %", "above", "below"]
    text = f"# Estimates of undecided pairs against the truth\n\n{environment()}\n\n{__doc__}\n{table(head, rows)}\n"
    deliver(text, ask.out)


if __name__ == "__main__":
    main()
