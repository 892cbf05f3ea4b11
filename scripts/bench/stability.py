"""Stability-regularised cross-validation beside the plain one: test error, and how far CV errors are from it.

    nice -n 19 python scripts/bench/stability.py --kept runs.jsonl --out build/stability.md [--cpu SECONDS]

Random splits into training rows (80%) and test rows; on the training rows

* plain: the pair with the least CV error over five folds, five gammas from 0.001 to 10 and the default sizes;
* a weight: the pair with the least CV error + weight x instability, for every weight of `--stability nested`;
* nested: the weight that five outer folds of the training rows choose, as `--stability nested` does.

Disappointment: by how many per cent an error that was reported before the test is below the test error,
`100 (1 - reported / test)`, errors averaged over the splits first. Reported: of plain its CV error; of nested its CV
error, and its nested error, that of the chosen weight over the outer folds.

No run has a limit, so that every choice is proved; `--kept` names a file of measured splits, one a line: those in it
are not run again, so that a long table can be made in parts. Splits come first, then data sets, so that any part is
balanced. With `--cpu` no split is begun after so many seconds of processor time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
from _common import INSTANCES, deliver, environment, table
from sklearn.datasets import load_linnerud, load_wine

from sparsecv_mio.certificate.parts import WeighedModel
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds, outer_folds
from sparsecv_mio.data.readers import read_dataset
from sparsecv_mio.problem.objective import fit, held_out_error
from sparsecv_mio.search.api import OUTER, STABILITY_WEIGHTS, answer, models_of_weights, tried_weights
from sparsecv_mio.search.options import SearchOptions
from sparsecv_mio.search.question import Question

FILES = {
    "prostate": "lpsa", "toxicity": "toxicity", "steam": "Steam", "alcohol2": "logSolubility",
    "hitters": "log10_salary", "servo": "class", "autompg": "mpg", "housing": "medv", "diabetes": "y",
}  # fmt: skip
PRODUCTS = ("prostate", "toxicity")  # also with all products of two features
SLOW = ("autompg", *(f"{name} x" for name in PRODUCTS))  # left out unless named: minutes a split
NAMES = (*(name for name in FILES if name not in SLOW), "linnerud", "wine alcohol")
FOLDS, GAMMAS = "5", "0.001:10:5"


@dataclass(frozen=True)
class Split:
    """One split: errors by weight on the test rows, and what was reported before."""

    name: str
    split: int
    rows: int
    features: int
    errors: list[float]
    taus: list[int]
    weight: float
    cv_plain: float
    cv_stable: float
    nested_plain: float
    nested_stable: float
    instability_plain: float
    instability_stable: float
    proved: bool
    seconds: float

    @property
    def plain(self) -> float:
        """Test error of the least CV error."""
        return self.errors[0]

    @property
    def stable(self) -> float:
        """Test error with the weight that nested cross-validation chose."""
        return self.errors[STABILITY_WEIGHTS.index(self.weight)]


def data_of(name: str) -> Dataset:
    """Read one of the data sets."""
    if name == "linnerud":
        found = load_linnerud(as_frame=True)["frame"]
        return Dataset.from_frame(found, "Weight")
    if name == "wine alcohol":
        frame = load_wine(as_frame=True)["data"]
        return Dataset.from_frame(frame, "alcohol")
    base = name.split()[0]
    data = read_dataset(INSTANCES / f"{base}.csv", FILES[base])
    if base == name:
        return data
    pairs = list(combinations(range(data.p), 2))
    products = np.column_stack([data.X[:, a] * data.X[:, b] for a, b in pairs])
    names = [*data.names, *(f"{data.names[a]}:{data.names[b]}" for a, b in pairs)]
    return Dataset.from_arrays(np.column_stack([data.X, products]), data.y, names)


def measured(name: str, number: int) -> Split:
    """Run one split."""
    data, begin = data_of(name), time.process_time()
    rng = np.random.default_rng([2505, number])
    order = rng.permutation(data.n)
    count = data.n // 5
    test, training = np.sort(order[:count]), data.take(np.sort(order[count:]))
    plan = make_folds(FOLDS, training)
    options = SearchOptions(stability=STABILITY_WEIGHTS, threads=1)
    asked = Question(training, plan, GAMMAS, None, options)
    record, outer = answer(asked), outer_folds(OUTER, plan, training)
    assert record.stability is not None and record.stability.chosen is not None
    chosen = record.stability.chosen
    found = [models_of_weights(asked, outer, fold) for fold in range(OUTER)]
    tried = tried_weights(found, [float(size) for size in outer.sizes])
    best = min(tried, key=lambda one: (one.error, one.weight))
    rows = {
        (row.gamma, row.tau): (row.cv_error, one.upper) for row, one in zip(record.table, chosen.intervals, strict=True)
    }
    pairs = {one.weight: rows[one.gamma, one.tau] for one in chosen.models}

    def error(one: WeighedModel) -> float:
        support = [data.names.index(feature) for feature in one.support]
        model = fit(training.X, training.y, support, one.gamma)
        return held_out_error(model, data.X, data.y, test) / len(test)

    return Split(
        name, number, data.n, data.p, [error(one) for one in chosen.models], [one.tau for one in chosen.models],
        best.weight, pairs[0.0][0], pairs[best.weight][0], tried[0].error, best.error, pairs[0.0][1],
        pairs[best.weight][1], record.status == "proved" and all(one.proved for one in chosen.models),
        time.process_time() - begin,
    )  # fmt: skip


def below(reported: Iterable[float], test: Iterable[float]) -> float:
    """Return by how many per cent the mean of errors reported is below that of test errors."""
    return 100.0 * (1.0 - float(np.mean(list(reported)) / np.mean(list(test))))


def by_set(splits: list[Split]) -> str:
    """One line a data set, and the mean over the sets."""
    names = [name for name in (*NAMES, *SLOW) if any(one.name == name for one in splits)]
    lines: list[list[object]] = []
    for name in names:
        some = [one for one in splits if one.name == name]
        test, stable = [one.plain for one in some], [one.stable for one in some]
        ratios = [one.stable / one.plain for one in some]
        weights = ", ".join(f"{weight:g}" for weight in sorted(one.weight for one in some))
        lines.append([
            name, some[0].rows, some[0].features, len(some), f"{sum(one.proved for one in some)}/{len(some)}",
            float(np.mean(test)), float(np.mean(stable)), float(np.mean(stable) / np.mean(test)),
            f"{sum(r < 1.0 for r in ratios)}/{sum(r == 1.0 for r in ratios)}/{sum(r > 1.0 for r in ratios)}",
            below((one.cv_plain for one in some), test), below((one.cv_stable for one in some), stable),
            below((one.nested_plain for one in some), test), below((one.nested_stable for one in some), stable),
            weights,
        ])  # fmt: skip
    head = [
        "data", "rows", "features", "splits", "proved", "test plain", "test nested", "nested / plain",
        "better/same/worse", "CV plain below", "CV nested below", "nested CV of plain below", "nested CV below",
        "weights chosen",
    ]  # fmt: skip
    middle: list[object] = ["mean of the sets", "", "", len(splits), "", "", ""]
    means = [float(np.mean([float(str(line[at])) for line in lines])) for at in (7, 9, 10, 11, 12)]
    return table(head, [[*map(_text, line)] for line in [*lines, [*middle, means[0], "", *means[1:], ""]]])


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def by_weight(splits: list[Split]) -> str:
    """One line a weight: test error relative to plain (mean over sets of ratios of mean errors), features."""
    names = list(dict.fromkeys(one.name for one in splits))
    lines: list[list[object]] = []
    for at, weight in enumerate(STABILITY_WEIGHTS):
        ratios, sizes = [], []
        for name in names:
            some = [one for one in splits if one.name == name]
            ratios.append(float(np.mean([one.errors[at] for one in some]) / np.mean([one.plain for one in some])))
            sizes.append(float(np.mean([one.taus[at] for one in some])))
        chosen = sum(one.weight == weight for one in splits)
        lines.append([weight, float(np.mean(ratios)), min(ratios), max(ratios), float(np.mean(sizes)), chosen])
    return table(["weight", "test / plain", "least set", "largest set", "features", "times chosen"], lines)


def summary(splits: list[Split]) -> str:
    """The figures that the publication reports, ours beside them."""
    names = list(dict.fromkeys(one.name for one in splits))
    groups = [[one for one in splits if one.name == name] for name in names]
    plain = [below((one.cv_plain for one in some), (one.plain for one in some)) for some in groups]
    nested = [below((one.nested_stable for one in some), (one.stable for one in some)) for some in groups]
    ratio = [-below((one.stable for one in some), (one.plain for one in some)) for some in groups]
    rows: list[list[object]] = [
        [words, published, f"{np.mean(found):+.1f}%", f"{np.median(found):+.1f}%"]
        for words, published, found in (
            ("test error, stability with a nested weight against plain", "-4%", ratio),
            ("plain: CV error below its test error", "+21.8%", plain),
            ("stability: nested CV error below its test error", "+0.9%", nested),
        )
    ]
    return table(["", "published, 13 sets", f"here, mean of {len(names)} sets", "median of the sets"], rows)


def main() -> int:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--cpu", type=float, default=float("inf"), help="seconds of processor time [no end]")
    parser.add_argument("--only", nargs="*", default=list(NAMES), metavar="NAME", help="data sets [ten]")
    parser.add_argument("--kept", metavar="FILE", help="measured splits: read, and added to")
    parser.add_argument("--out")
    ask = parser.parse_args()
    kept = Path(ask.kept) if ask.kept else None
    lines = kept.read_text().splitlines() if kept is not None and kept.exists() else []
    splits = [Split(**json.loads(line)) for line in lines]
    known = {(one.name, one.split) for one in splits}
    for number in range(ask.splits):
        for name in ask.only:
            if (name, number) in known or time.process_time() > ask.cpu:
                continue
            splits.append(measured(name, number))
            print(name, number, f"{splits[-1].seconds:.1f} s", file=sys.stderr, flush=True)
            if kept is not None:
                with kept.open("a") as stream:
                    stream.write(json.dumps(asdict(splits[-1])) + "\n")
    spent = sum(one.seconds for one in splits)
    asked = ask.splits * len(ask.only)
    measured_of = f"**{len(splits)} of {asked} splits measured**, {spent:.0f} s of processor time."
    head = f"# Stability-regularised cross-validation\n\n{measured_of} {environment()}\n\n{__doc__}"
    parts = [head, "## Beside the publication\n", summary(splits), "\n## By data set\n", by_set(splits)]
    deliver("\n".join([*parts, "\n## By weight\n", by_weight(splits), ""]), ask.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
