"""Test errors on real data: best subset ridge by both rules beside LassoCV, the relaxed lasso and abess.

    python scripts/bench/real.py run --out FOLDER [--splits 10] [--limit 1] [--sets prostate diabetes ...] [...]
    python scripts/bench/real.py report --out FOLDER [--results results]
    python scripts/bench/real.py run --loss logistic --data FOLDER --out FOLDER [--limit 5] [...]

Random splits, 80% of the rows to fit and 20% to score; every method chooses by the same ten folds of the training rows.
Sets of 8 to 500 columns from `instances/`, and from the folders of `--data` where they are downloaded; `prostate43`
(by default) and `hitters208` have squares and products besides, as the field does. Ours runs under a limit on processor
time (`--limit`), and both rules, the least CV error and one standard error above it, come from one search.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from _batches import add_run_options, carry_on
from _common import parser_of

from sparsecv_mio.batch.batch_plan import Task, make_tasks

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
TARGETS = {
    "prostate": "lpsa", "toxicity": "toxicity", "diabetes": "y", "housing": "medv", "hitters": "log10_salary",
    "servo": "class", "alcohol2": "logSolubility", "autompg": "mpg", "topgear": "MPG", "prostate43": "lpsa",
    "diabetes64": "y", "housing2": "medv", "bardet": "y", "wine": "quality", "topgear_int": "MPG",
    "hitters208": "log10_salary",
}  # fmt: skip
OF_CLASSES = (
    "breast_cancer", "saheart", "pima", "heart", "bupa", "australian", "mammographic", "bands", "ionosphere", "german",
    "sonar", "spambase", "drawn20", "drawn60", "drawn150",
)  # fmt: skip
SLOW = ("hitters208",)  # the lasso takes 10 seconds a run: only where asked for
PRODUCTS = {"prostate43": "prostate", "hitters208": "hitters"}  # made of another set: squares and products besides


def place_of(name: str, ask: argparse.Namespace) -> Path | None:
    """Return the file of a set, made where it is one of products; None where it is absent."""
    if name == "breast_cancer" or name.startswith("drawn"):
        place = Path(ask.out) / "data" / f"{name}.csv"
        if not place.exists():
            write_classes(name, place)
        return place
    if name in PRODUCTS:
        place = Path(ask.out) / "data" / f"{name}.csv"
        if not place.exists():
            with_products(INSTANCES / f"{PRODUCTS[name]}.csv", TARGETS[name], place)
        return place
    places = [folder / f"{name}.csv" for folder in (INSTANCES, *map(Path, ask.data))]
    return next((place for place in places if place.exists()), None)


def with_products(source: Path, target: str, place: Path) -> None:
    """Write a file with the columns of another, their squares and products, each different column once."""
    import pandas as pd

    frame = pd.read_csv(source)
    X = frame.drop(columns=target)
    names = list(X)
    centred = X - X.mean()  # else a square would be nearly its column
    wide = {name: X[name] for name in names}
    for i, one in enumerate(names):
        for other in names[i:]:
            product = centred[one] * centred[other]
            if not (one == other and X[one].nunique() == 2):  # the square of an indicator is the indicator
                wide[f"{one}:{other}"] = product
    place.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame({**wide, target: frame[target]}).to_csv(place, index=False)


def write_classes(name: str, place: Path) -> None:
    """Write a file of two classes, `t`: the breast cancer data, or 300 rows of so many columns, six of which count."""
    import numpy as np
    import pandas as pd

    if name == "breast_cancer":
        from sklearn.datasets import load_breast_cancer

        frame = load_breast_cancer(as_frame=True).frame.rename(columns={"target": "t"})
    else:
        rng, p = np.random.default_rng(0), int(name.removeprefix("drawn"))
        X = rng.normal(size=(300, p))
        for j in range(1, p):
            X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
        signal = X[:, :: max(p // 6, 1)][:, :6].sum(axis=1)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(p)])
        frame["t"] = (signal + rng.logistic(size=300) > 0.0).astype(int)
    place.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(place, index=False)


def phases(ask: argparse.Namespace) -> Iterator[list[Task]]:
    """Yield the tasks of one split of every set after the other."""
    places = {name: place_of(name, ask) for name in ask.sets}
    for name, place in places.items():
        if place is None:
            print(f"{name}: left out, {name}.csv is in no folder of --data", file=sys.stderr)
    data = [
        {"file": str(place.resolve()), "target": TARGETS.get(name, "t")}
        for name, place in places.items()
        if place is not None
    ]
    for split in range(ask.splits):
        ours = {"estimator": "sparsecv", "one_se": "both", "cpu_limit": ask.limit}
        for vary in (ours, {"estimator": ask.peers}):
            how = {"folds": "10", "test": 0.2, "split": split, "loss": ask.loss, **vary}
            yield make_tasks({"data": data, "vary": how}, Path("/"))


def main() -> int:
    """Run the study, or report what is there."""
    parser = parser_of(__doc__)
    parser.add_argument("do", choices=("run", "report"))
    add_run_options(parser)
    parser.add_argument("--data", nargs="*", default=[], metavar="FOLDER", help="folders of further files")
    parser.add_argument("--loss", choices=("squared", "logistic"), default="squared")
    parser.add_argument("--sets", nargs="+", choices=(*TARGETS, *OF_CLASSES))
    parser.add_argument("--splits", type=int, default=10, help="random splits of each set [10]")
    parser.add_argument("--peers", nargs="+", help="[lasso relaxed-lasso abess, of two classes ridge for the second]")
    parser.add_argument("--unverified", action="store_true", help="report without a verification of every record")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds of the processor a search of ours [1]")
    ask = parser.parse_args()
    squared = ask.loss == "squared"
    ask.sets = ask.sets or ([name for name in TARGETS if name not in SLOW] if squared else list(OF_CLASSES))
    ask.peers = ask.peers or ["lasso", "relaxed-lasso" if squared else "ridge", "abess"]
    if ask.do == "run":
        return carry_on(phases(ask), ask)
    from _real_report import report

    return report(ask)


if __name__ == "__main__":
    sys.exit(main())
