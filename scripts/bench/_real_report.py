"""The table of `real.py`: test errors relative to the lasso's, features used, means over the splits and the sets."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from real import OF_CLASSES, TARGETS

from sparsecv_mio.batch.collected import collect
from sparsecv_mio.batch.task_folder import BatchFolder

NAMES = {
    "sparsecv": "ours", "one-se": "ours, one SE", "relaxed-lasso": "relaxed lasso", "ridge": "ridge", "abess": "abess",
    "lasso": "LassoCV",
}  # fmt: skip
METHODS = {
    "squared": ("sparsecv", "one-se", "relaxed-lasso", "abess", "lasso"),
    "logistic": ("sparsecv", "one-se", "ridge", "abess", "lasso"),
}
FILES = {"squared": "real_data", "logistic": "two_classes"}
TITLES = {"squared": "Test errors on real data", "logistic": "Test log losses of two classes"}
COLUMNS = [
    "data", "estimator", "split", "n", "p", "state", "tau", "gamma", "cv_error", "gap", "test_error", "features",
    "one_se_test_error", "one_se_features", "cpu_seconds",
]  # fmt: skip


def by_method(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a number by (set, split) and method, of splits that every method has done."""
    ours = frame[frame["estimator"] == "sparsecv"].assign(estimator="one-se")
    ours[column] = ours[f"one_se_{column}"]
    both = pd.concat([frame, ours])
    return both.pivot_table(index=["data", "split"], columns="estimator", values=column).dropna()


def bands(errors: pd.DataFrame, methods: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Return the mean ratio of every method's error to the lasso's and its standard error over the splits."""
    found = {}
    for method in methods:
        ratio = errors[method].to_numpy(dtype=float) / errors["lasso"].to_numpy(dtype=float)
        spread = float(ratio.std(ddof=1)) / len(ratio) ** 0.5 if len(ratio) > 1 else float("nan")
        found[method] = float(ratio.mean()), spread
    return found


def of_classes(frame: pd.DataFrame, methods: tuple[str, ...], names: list[str]) -> list[str]:
    """Return a table of mean log losses, areas under the ROC curve and accuracies by set."""
    columns = ("test_error", "test_auc", "test_accuracy")
    known = {column: by_method(frame, column) for column in columns}
    head = ["data", *(f"log loss: {names[0]}", *names[1:]), *(f"AUC: {names[0]}", *names[1:])]
    head += [f"accuracy: {names[0]}", *names[1:]]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for data in [name for name in OF_CLASSES if name in known["test_error"].index.get_level_values("data")]:
        tables = [known[column].xs(data, level="data") for column in columns]
        means = [float(table[method].mean()) for table in tables for method in methods]
        lines.append(f"| {data} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    return [*lines, ""]


def report(ask: argparse.Namespace) -> int:
    """Write `real_data.md` and `real_data.csv`, of two classes `two_classes.md` and `.csv`."""
    frame = collect(BatchFolder(ask.out), check=not ask.unverified)
    methods, lasso = METHODS[ask.loss], "LassoCV" if ask.loss == "squared" else "L1"
    failed = frame[frame["state"] == "failed"]
    frame = frame[frame["state"] != "failed"]
    errors, features = by_method(frame, "test_error"), by_method(frame, "features")
    names = {**NAMES, "lasso": lasso}
    head = ["data", "n", "p", "splits", "proved", *(names[name] for name in methods[:-1]), "features: ours",
            *(names[name] for name in methods[1:])]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    ratios: list[dict[str, Any]] = []
    for name in [name for name in (*TARGETS, *OF_CLASSES) if name in errors.index.get_level_values("data")]:
        here = errors[errors.index.get_level_values("data") == name]
        size = features[features.index.get_level_values("data") == name].mean().to_dict()
        ours = frame[(frame["data"] == name) & (frame["estimator"] == "sparsecv")]
        found = bands(here, methods)
        ratios.append({method: found[method][0] for method in methods}
                      | {f"features {method}": float(size[method]) for method in methods})  # fmt: skip
        cells = [name, str(ours["n"].iloc[0]), str(ours["p"].iloc[0]), str(len(here)),
                 f"{np.mean(ours['state'] == 'done'):.0%}",
                 *(f"{found[m][0]:.3f} ± {found[m][1]:.3f}" for m in methods[:-1]),
                 *(f"{size[m]:.1f}" for m in methods)]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    sets = pd.DataFrame(ratios)
    share = {m: float(np.mean(sets[f"features {m}"] / sets["features lasso"])) for m in methods}
    said = []
    for m in methods[:-1]:
        ratio = sets[m]
        said.append(
            f"* {names[m]}: ratio to {lasso}'s error, mean of the sets {ratio.mean():.3f} (geometric "
            f"{np.exp(np.log(ratio).mean()):.3f}), no more than 1 on {int((ratio <= 1.0).sum())} of "
            f"{len(sets)}; features over {lasso}'s {share[m]:.2f}."
        )
    told = "Records of ours were not verified for this table."
    if not ask.unverified:
        verified = frame.loc[frame["estimator"] == "sparsecv", "verified"].astype(bool)
        told = f"Records of ours verified: {int(verified.sum())}, not: {int((~verified).sum())}."
    run = "python scripts/bench/real.py run" + ("" if ask.loss == "squared" else " --loss logistic --data FOLDER")
    text = [
        f"# {TITLES[ask.loss]}", "",
        f"`{run} --out FOLDER`, then `report` in place of `run`. Ratios of test errors to "
        f"{lasso}'s of the same split, means over the splits and their standard errors; all methods choose by the same "
        f"ten folds; n counts training rows. Our searches have {ask.limit:g} s of the processor. Processor seconds of "
        f"all methods together: {frame['cpu_seconds'].sum():.0f}. {told} Tasks that failed: {len(failed)}.", "",
        *lines, "", *said, "",
        *(of_classes(frame, methods, [names[m] for m in methods]) if ask.loss == "logistic" else ()),
    ]  # fmt: skip
    place, ordered = Path(ask.results), frame.sort_values(["data", "split", "estimator"])
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{FILES[ask.loss]}.md").write_text("\n".join(text), encoding="utf-8")
    ordered[[name for name in COLUMNS if name in ordered]].to_csv(
        place / f"{FILES[ask.loss]}.csv", index=False, float_format="%.6g"
    )
    print("\n".join(text))
    return 0
