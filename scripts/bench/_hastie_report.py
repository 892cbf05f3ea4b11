"""Tables and figures of `hastie.py`: who wins at which signal-to-noise ratio, and with how many features."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hastie import BETAS, RHOS, SIZES, SNRS

from sparsecv_mio.batch.collected import restore_task
from sparsecv_mio.batch.one_task import task_rows
from sparsecv_mio.batch.sources import signal_variance
from sparsecv_mio.batch.task_folder import BatchFolder, TaskOutcome
from sparsecv_mio.data.folds import make_folds

METRICS = {
    "relative_risk": "relative risk", "relative_test_error": "relative test error",
    "variance_explained": "proportion of variance explained", "features": "nonzeros", "f1": "F1",
}  # fmt: skip
NAMES = {
    "sparsecv": "best subset ridge", "tau-from-0": "best subset ridge, tau from 0",
    "one-se": "best subset ridge, one SE",
    "lasso": "lasso", "relaxed-lasso": "relaxed lasso", "forward": "forward stepwise", "abess": "abess",
}  # fmt: skip
COLOURS = {
    "sparsecv": "tab:red", "tau-from-0": "tab:pink", "one-se": "tab:orange", "lasso": "tab:blue",
    "relaxed-lasso": "tab:green", "forward": "tab:purple", "abess": "tab:brown",
}  # fmt: skip
BANDS = {"0.05 to 0.14": (0.0, 0.2), "0.25 to 0.71": (0.2, 1.0), "1.22 to 6": (1.0, 10.0)}
SETTING = ["tuning", "size", "beta", "rho", "snr"]
SIZE_OF = {shape: name for name, shape in SIZES.items()}
TYPE_OF = {word: kind for kind, word in BETAS.items()}
TOLD = 0.01  # difference of relative test errors that counts as a win or a loss


def rows_of_folder(folder: BatchFolder) -> Iterator[dict[str, Any]]:
    """Yield a row for every draw of a setting and method."""
    for outcome in folder.outcomes():
        spec, numbers = outcome.task["source"], outcome.numbers
        if outcome.state == "failed":
            continue
        method = outcome.task["settings"]["estimator"]
        row = {
            "tuning": "validation" if "validation" in spec else "folds", "beta": TYPE_OF[spec["beta"]],
            "size": SIZE_OF[spec["n"], spec["p"], spec["support"]], "rho": spec["rho"], "snr": spec["snr"],
            "draw": spec["draw"], "cpu": numbers.get("cpu_seconds"),
        }  # fmt: skip
        measured = {name: numbers[name] for name in METRICS}
        yield {**row, "method": method, "state": outcome.state, **measured}
        if method == "sparsecv":
            yield {**row, "method": "tau-from-0", "state": outcome.state, **with_tau_from_0(outcome, measured)}
            if "one_se_features" in numbers:
                simple = {name: numbers[f"one_se_{name}"] for name in METRICS}
                yield {**row, "method": "one-se", "state": outcome.state, **simple}


def with_tau_from_0(outcome: TaskOutcome, measured: dict[str, float]) -> dict[str, float]:
    """Return the numbers of the grid with tau = 0 besides: those of the mean where its error is no larger."""
    spec, numbers = outcome.task["source"], outcome.numbers
    signal = signal_variance(spec)
    noise = signal / float(spec["snr"])
    if numbers["cv_error"] < 0.5 * (signal + noise):  # the mean is far worse
        return measured
    task = restore_task(outcome)
    data = task_rows(task).train
    plan = make_folds(str(task.settings["folds"]), data, int(task.settings["seed"]))
    errors = [
        np.sum((data.y[plan.scored_rows(j)] - data.y[plan.train_rows(j)].mean()) ** 2) for j in range(plan.k)
    ]  # fmt: skip
    if numbers["cv_error"] < sum(errors) / plan.scored:
        return measured
    fitted = plan.train_rows(0) if plan.k == 1 else np.arange(data.n)
    risk = signal + float(data.y[fitted].mean()) ** 2
    return {
        "relative_risk": risk / signal, "relative_test_error": (risk + noise) / noise,
        "variance_explained": 1.0 - (risk + noise) / (signal + noise), "features": 0, "f1": 0.0,
    }  # fmt: skip


def complete(frame: pd.DataFrame, tuning: str) -> pd.DataFrame:
    """Return the draws of one tuning that every method has."""
    part = frame[frame["tuning"] == tuning]
    counts = part.groupby([*SETTING, "draw"])["method"].transform("nunique")
    return part[counts == part["method"].nunique()] if len(part) else part


def band_table(part: pd.DataFrame, rivals: list[str]) -> list[str]:
    """Return a table by size and band of signal-to-noise ratios: our error over that of others, and features."""
    wide = part.pivot_table(index=[*SETTING[1:], "draw"], columns="method", values=["relative_test_error", "features"])
    told = [rival for rival in rivals if rival in wide["relative_test_error"]]
    head = ["(n, p, s)", "SNR", "draws", *(f"/ {NAMES[rival]}" for rival in told), "/ the mean",
            "worse, better than lasso", "features",
            *(NAMES[rival] for rival in told if rival != "tau-from-0")]  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    for size in [name for name in SIZES if name in wide.index.get_level_values("size")]:
        for band, (low, high) in BANDS.items():
            snr = wide.index.get_level_values("snr")
            some_of = (wide.index.get_level_values("size") == size) & (snr >= low) & (snr < high)
            some = wide[some_of]
            if some.empty:
                continue
            error, features = some["relative_test_error"], some["features"]
            ratios = [float(np.exp(np.mean(np.log(error["sparsecv"] / error[rival])))) for rival in told]
            ratios.append(float(np.exp(np.mean(np.log(error["sparsecv"] / (1.0 + snr[some_of].to_numpy()))))))
            off = (error["sparsecv"] / error["lasso"]).groupby(level=SETTING[1:]).mean()
            cells = [str(SIZES[size]), band, str(len(some)), *(f"{value:.3f}" for value in ratios),
                     f"{np.mean(off > 1 + TOLD):.0%}, {np.mean(off < 1 - TOLD):.0%}",
                     f"{features['sparsecv'].mean():.1f}",
                     *(f"{features[rival].mean():.1f}" for rival in told if rival != "tau-from-0")]  # fmt: skip
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def answer(part: pd.DataFrame) -> list[str]:
    """Return a line for each band: how often we are worse or better than the lasso and the relaxed lasso, features."""
    wide = part.pivot_table(index=[*SETTING[1:], "draw"], columns="method", values=["relative_test_error", "features"])
    lines = []
    for band, (low, high) in BANDS.items():
        snr = wide.index.get_level_values("snr")
        some = wide[(snr >= low) & (snr < high)]
        words = []
        for rival in [rival for rival in ("lasso", "relaxed-lasso") if rival in wide["relative_test_error"]]:
            error, features = some["relative_test_error"], some["features"]
            ratio = (error["sparsecv"] / error[rival]).groupby(level=SETTING[1:]).mean()
            words.append(
                f"{NAMES[rival]}: error {np.exp(np.log(error['sparsecv'] / error[rival]).mean()):.3f} times as large, "
                f"worse in {np.mean(ratio > 1 + TOLD):.0%} and better in {np.mean(ratio < 1 - TOLD):.0%} of "
                f"{len(ratio)} settings, "
                f"{features['sparsecv'].mean() / max(features[rival].mean(), 1e-9):.2f} times its features"
            )
        if len(some):
            lines.append(f"* SNR {band}, against the " + "; ".join(words) + ".")
    return lines


def loss_table(part: pd.DataFrame) -> list[str]:
    """Return the settings in which we lose most against the best of the others, means over the draws."""
    error = part.groupby([*SETTING[1:], "method"])["relative_test_error"].mean().unstack()
    others = error.drop(columns=[name for name in ("sparsecv", "tau-from-0", "one-se") if name in error])
    ratio = (error["sparsecv"] / others.min(axis=1)).sort_values(ascending=False)
    lines = ["| (n, p, s) | type | rho | SNR | ours | best other | which |", "|---|---|---:|---:|---:|---:|---|"]
    for setting in ratio.index[:10]:
        size, beta, rho, snr = setting
        rival = str(others.loc[setting].idxmin())
        lines.append(f"| {SIZES[size]} | {beta} | {rho:g} | {snr:g} | {error.loc[setting, 'sparsecv']:.3f} | "
                     f"{others.loc[setting, rival]:.3f} | {NAMES[rival]} |")  # fmt: skip
    return lines


def draw_size(part: pd.DataFrame, size: str, beta: str, place: Path) -> None:
    """Draw the five measures of one size and type by signal-to-noise ratio, a column for each rho."""
    import matplotlib.pyplot as plt

    some = part[(part["size"] == size) & (part["beta"] == beta)]
    figure, axes = plt.subplots(len(METRICS), len(RHOS), figsize=(11, 13), sharex=True, squeeze=False)
    for column, rho in enumerate(RHOS):
        here = some[some["rho"] == rho]
        for row, (metric, words) in enumerate(METRICS.items()):
            axis = axes[row, column]
            for method, lines in here.groupby("method"):
                found = lines.groupby("snr")[metric].agg(["mean", "sem"])
                axis.errorbar(found.index, found["mean"], yerr=found["sem"].fillna(0.0), label=NAMES[str(method)],
                              color=COLOURS[str(method)], marker="o", markersize=3, linewidth=1)  # fmt: skip
            axis.set_xscale("log")
            axis.set_xticks(SNRS, [f"{snr:g}" for snr in SNRS], fontsize=7)
            axis.minorticks_off()
            if row == 0:
                axis.set_title(f"correlation {rho:g}")
            if column == 0:
                axis.set_ylabel(words)
            if row == len(METRICS) - 1:
                axis.set_xlabel("signal-to-noise ratio")
    axes[0, 0].legend(fontsize=7)
    n, p, s = SIZES[size]
    figure.suptitle(f"n = {n}, p = {p}, s = {s}, coefficients of type {beta}; means and standard errors of the draws")
    figure.tight_layout()
    figure.savefig(place, dpi=75)
    plt.close(figure)


def draw_all(part: pd.DataFrame, rho: float, place: Path) -> None:
    """Draw the relative test error of every size and type at one correlation."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(len(SIZES), len(BETAS), figsize=(13, 11), sharex=True, squeeze=False)
    for row, size in enumerate(SIZES):
        for column, beta in enumerate(BETAS):
            axis = axes[row, column]
            here = part[(part["size"] == size) & (part["beta"] == beta) & (part["rho"] == rho)]
            for method, lines in here.groupby("method"):
                found = lines.groupby("snr")["relative_test_error"].mean()
                axis.plot(found.index, found, label=NAMES[str(method)], color=COLOURS[str(method)], marker="o",
                          markersize=3, linewidth=1)  # fmt: skip
            axis.set_xscale("log")
            axis.set_title(f"{SIZES[size]}, type {beta}", fontsize=9)
    for axis in axes[:, 0]:
        axis.set_ylabel("relative test error")
    for axis in axes[-1]:
        axis.set_xlabel("signal-to-noise ratio")
    handles, labels = next(
        (found for found in (axis.get_legend_handles_labels() for axis in axes.flat) if found[0]), ([], [])
    )
    figure.legend(handles, labels, loc="lower center", ncols=len(labels) or 1)
    figure.suptitle(f"Relative test error at correlation {rho:g}")
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(place, dpi=75)
    plt.close(figure)


def report(ask: argparse.Namespace) -> int:
    """Write `hastie.md`, `hastie.csv` and the figures."""
    results = Path(ask.results)
    results.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows_of_folder(BatchFolder(ask.out)))
    means = frame.groupby([*SETTING, "method"])[[*METRICS, "cpu"]].mean()
    means["draws"] = frame.groupby([*SETTING, "method"]).size()
    means.reset_index().round(5).to_csv(results / "hastie.csv", index=False)
    text = ["# The design of Hastie, Tibshirani and Tibshirani", "",
            "`python scripts/bench/hastie.py run --out FOLDER`, then `report --out FOLDER`; what is compared, and "
            "what follows, stands in docs/studies.md. Searches of ours have "
            f"{ask.validation_limit:g} s of the processor (validation) or {ask.cv_limit:g} s (ten folds): those with "
            "100 columns and more are not proved then, and are what the limit left. "
            "Errors are relative test errors, geometric means of ratios over draws; below 0.02 differences mean "
            "little; `/ the mean` is against predicting the mean of the target; a setting is worse or better than "
            "the lasso from 1% on.", ""]  # fmt: skip
    for tuning in ask.tunings:
        part = complete(frame, tuning)
        if part.empty:
            continue
        settings = part.groupby(SETTING).ngroups
        ours = part[part["method"] == "sparsecv"]
        proved = ours.groupby("size")["state"].apply(lambda states: float(np.mean(states == "done")))
        shares = ", ".join(f"{SIZES[str(size)]} {share:.0%}" for size, share in proved.items())
        rivals = ["tau-from-0", "one-se", "lasso", "relaxed-lasso", "forward", "abess"]
        text += [
            f"## Tuned on {'a validation set' if tuning == 'validation' else 'ten folds'}", "",
            f"{settings} of 480 settings, {len(ours) / max(settings, 1):.1f} draws each. Searches of ours that were "
            f"proved within their limit: {shares}. Processor seconds of all methods together: {part['cpu'].sum():.0f}.",
            "", *answer(part), "", *band_table(part, rivals), "", "Where we lose most:", "", *loss_table(part), "",
        ]  # fmt: skip
        draw_all(part, 0.35, results / f"hastie_{tuning}.png")
        for size in part["size"].unique():
            draw_size(part, size, "2", results / f"hastie_{tuning}_{size}.png")
    (results / "hastie.md").write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))
    return 0
