"""The table of `real.py`: test errors relative to LassoCV, features used, means over the splits and over the sets."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from real import TARGETS

from sparsecv_mio.batch.one_task import BatchFolder
from sparsecv_mio.batch.results import collect

METHODS = ("sparsecv", "one-se", "relaxed-lasso", "abess", "lasso")
NAMES = {
    "sparsecv": "ours", "one-se": "ours, one SE", "relaxed-lasso": "relaxed lasso", "abess": "abess",
    "lasso": "LassoCV",
}  # fmt: skip
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


def bands(errors: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Return the mean ratio of every method's error to LassoCV's and its standard error over the splits."""
    found = {}
    for method in METHODS:
        ratio = errors[method].to_numpy(dtype=float) / errors["lasso"].to_numpy(dtype=float)
        spread = float(ratio.std(ddof=1)) / len(ratio) ** 0.5 if len(ratio) > 1 else float("nan")
        found[method] = float(ratio.mean()), spread
    return found


def report(ask: argparse.Namespace) -> int:
    """Write `real_data.md` and `real_data.csv`."""
    frame = collect(BatchFolder(ask.out), check=True)
    failed = frame[frame["state"] == "failed"]
    frame = frame[frame["state"] != "failed"]
    errors, features = by_method(frame, "test_error"), by_method(frame, "features")
    head = ["data", "n", "p", "splits", "proved", *(NAMES[name] for name in METHODS[:-1]), "features: ours", "one SE",
            "relaxed", "abess", "LassoCV"]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    ratios: list[dict[str, Any]] = []
    for name in [name for name in TARGETS if name in errors.index.get_level_values("data")]:
        here = errors[errors.index.get_level_values("data") == name]
        size = features[features.index.get_level_values("data") == name].mean().to_dict()
        ours = frame[(frame["data"] == name) & (frame["estimator"] == "sparsecv")]
        found = bands(here)
        ratios.append({method: found[method][0] for method in METHODS}
                      | {f"features {method}": float(size[method]) for method in METHODS})  # fmt: skip
        cells = [name, str(ours["n"].iloc[0]), str(ours["p"].iloc[0]), str(len(here)),
                 f"{np.mean(ours['state'] == 'done'):.0%}",
                 *(f"{found[m][0]:.3f} ± {found[m][1]:.3f}" for m in METHODS[:-1]),
                 *(f"{size[m]:.1f}" for m in METHODS)]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    sets = pd.DataFrame(ratios)
    share = {m: float(np.mean(sets[f"features {m}"] / sets["features lasso"])) for m in METHODS}
    said = []
    for m in METHODS[:-1]:
        ratio = sets[m]
        said.append(
            f"* {NAMES[m]}: ratio to LassoCV's error, mean of the sets {ratio.mean():.3f} (geometric "
            f"{np.exp(np.log(ratio).mean()):.3f}), no more than 1 on {int((ratio <= 1.0).sum())} of "
            f"{len(sets)}; features over LassoCV's {share[m]:.2f}."
        )
    verified = frame.loc[frame["estimator"] == "sparsecv", "verified"].astype(bool)
    text = [
        "# Test errors on real data", "",
        "`python scripts/studies/real.py run --out FOLDER`, then `report --out FOLDER`. Ratios of test errors to "
        "LassoCV's of the same split, means over the splits and their standard errors; all methods choose by the same "
        f"ten folds; n counts training rows. Our searches have {ask.limit:g} s of the processor. Processor seconds of "
        f"all methods together: {frame['cpu_seconds'].sum():.0f}. Records of ours verified: {int(verified.sum())}, "
        f"not: {int((~verified).sum())}. Tasks that failed: {len(failed)}.", "", *lines, "", *said, "",
    ]  # fmt: skip
    place = Path(ask.results)
    (place / "real_data.md").write_text("\n".join(text), encoding="utf-8")
    ordered = frame.sort_values(["data", "split", "estimator"])
    ordered[COLUMNS].to_csv(place / "real_data.csv", index=False, float_format="%.6g")
    print("\n".join(text))
    return 0
