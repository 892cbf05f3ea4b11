"""Figures 1 to 4 of "Iterative Approximate Cross-Validation" (Luo, Ren, Barber 2023), from its simulation.

python scripts/papers/iacv_figures.py [--figures 1,2,3,4] [--repeats 3] [--sizes 250,1000] [--p 20]
                                      [--iterations 6000] [--sgd-iterations 10000] [--batches 100,400] [--out results]

Section 6: rows N(0, I), five nonzero coefficients N(0, 1), logistic labels; lam = 1e-6 n with `||theta||_2^2` (gd, sgd)
or `||theta||_1` (proxgd); steps 0.5 / n, for sgd 0.5 / K with epoch doubling from 1,000 steps; start at the origin. The
paper has 100 repeats, 10,000 steps and 100,000 of sgd, where the exact fits take hours; the defaults take minutes.
Lines are medians, bands lie between the quartiles.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

from _common import FloatArray, environment, np, table
from iacv_acceptance import simulate

from sparsecv_mio.oracles.iacv import (
    L1,
    METHODS,
    EpochDoubling,
    Erm,
    Logistic,
    Report,
    Ridge,
    Solver,
    gd,
    log_spaced,
    proxgd,
    run,
    sgd,
)
from sparsecv_mio.report.figures import panels, save
from sparsecv_mio.report.iacv_plots import draw

RESULTS = Path(__file__).resolve().parents[2] / "results"
FIRST_EPOCH = 1000
RECORDED = 40


@dataclass(frozen=True)
class Setting:
    """One column of a figure."""

    kind: str
    n: int
    p: int
    iterations: int
    batch: int | None = None

    @property
    def title(self) -> str:
        return f"{self.kind}, n = {self.n}" + (f", K = {self.batch}" if self.batch else "")

    def solver(self, seed: int) -> Solver:
        if self.batch:
            return sgd(EpochDoubling(0.5 / self.batch, FIRST_EPOCH), self.batch, seed)
        return (proxgd if self.kind == "proxgd" else gd)(0.5 / self.n)


class Runs:
    """Repeats of a setting, run once and shared between figures."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.done: dict[Setting, list[Report]] = {}

    def of(self, setting: Setting) -> list[Report]:
        if setting not in self.done:
            found = []
            for seed in range(self.repeats):
                X, y = simulate(setting.n, setting.p, seed)
                penalty = L1() if setting.kind == "proxgd" else Ridge()
                erm = Erm(X, y, Logistic(), penalty, 1e-6 * setting.n)
                grid = log_spaced(setting.iterations, RECORDED)
                found.append(
                    run(erm, setting.solver(seed), setting.iterations, record=grid, methods=(*METHODS, "exact"))
                )
                print(f"{setting.title}: repeat {seed + 1} of {self.repeats}", file=sys.stderr, flush=True)
            self.done[setting] = found
        return self.done[setting]


def stacked(reports: list[Report], field: str) -> dict[str, FloatArray]:
    """(repeats, m) arrays of one error, per method."""
    return {name: np.array([getattr(r.traces[name], field) for r in reports]) for name in reversed(METHODS)}


def figure_1(runs: Runs, settings: list[Setting], path: Path) -> None:
    figure, axes = panels(1, len(settings), (5 * len(settings), 4))
    for ax, setting in zip(axes[0], settings, strict=True):
        reports = runs.of(setting)
        curves = {name: values for name, values in stacked(reports, "err_cv").items() if name != "baseline"}
        draw(ax, reports[0].iterations, curves, "CV error")
        ax.set_title(setting.title)
    save(figure, path)


def error_panels(runs: Runs, settings: list[Setting], path: Path) -> None:
    """Figures 2 to 4: approximation error, relative CV error, run time."""
    figure, axes = panels(3, len(settings), (5 * len(settings), 11))
    for column, setting in enumerate(settings):
        reports = runs.of(setting)
        steps = reports[0].iterations
        draw(axes[0, column], steps, stacked(reports, "err_approx"), "approximation error")
        draw(axes[1, column], steps, stacked(reports, "rel_err_cv"), "relative CV error")
        times = {
            "exact": np.array([r.seconds_exact for r in reports]),
            "iacv": np.array([r.seconds for r in reports]),
        }
        draw(axes[2, column], steps, times, "seconds", log=False)
        axes[0, column].set_title(setting.title)
    save(figure, path)


def last(reports: list[Report], field: str, at: int = -1) -> dict[str, float]:
    return {name: float(np.median(values[:, at])) for name, values in stacked(reports, field).items()}


def summary(runs: Runs) -> str:
    """A table of the figures' numbers: medians early (near step 10) and at the last step, and the time ratio."""
    rows = []
    for setting, reports in sorted(runs.done.items(), key=lambda item: (item[0].kind, item[0].n, item[0].batch)):
        early = int(np.searchsorted(reports[0].iterations, 10))
        ratio = np.median([r.seconds_exact[-1] / r.seconds[-1] for r in reports])
        for when, at in ((int(reports[0].iterations[early]), early), (setting.iterations, -1)):
            error, relative = last(reports, "err_approx", at), last(reports, "rel_err_cv", at)
            row: list[object] = [setting.title, when]
            row += [error[name] for name in METHODS] + [relative[name] for name in METHODS]
            rows.append([*row, f"{ratio:.1f}" if at == -1 else ""])
    head = ["setting", "step"]
    head += [f"err {name}" for name in METHODS] + [f"rel {name}" for name in METHODS] + ["exact / IACV time"]
    return table(head, rows)


def as_json(runs: Runs) -> list[dict[str, Any]]:
    """Medians of every curve, so that figures can be drawn again without the runs."""
    out = []
    for setting, reports in runs.done.items():
        curves = {
            field: {name: np.median(values, axis=0).tolist() for name, values in stacked(reports, field).items()}
            for field in ("err_approx", "err_cv", "rel_err_cv")
        }
        seconds = {
            "iacv": np.median([r.seconds for r in reports], axis=0).tolist(),
            "exact": np.median([r.seconds_exact for r in reports], axis=0).tolist(),
        }
        steps = reports[0].iterations.tolist()
        out.append({"setting": vars(setting), "iterations": steps, "medians": curves, "seconds": seconds})
    return out


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=numbers, default=[1, 2, 3, 4])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", type=numbers, default=[250, 1000])
    parser.add_argument("--p", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=6000)
    parser.add_argument("--sgd-iterations", type=int, default=10_000)
    parser.add_argument("--batches", type=numbers, default=[100, 400])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()

    runs, largest = Runs(options.repeats), max(options.sizes)
    descents = [Setting("gd", n, options.p, options.iterations) for n in options.sizes]
    stochastic = [Setting("sgd", largest, options.p, options.sgd_iterations, k) for k in options.batches]
    proximal = [Setting("proxgd", n, options.p, options.iterations) for n in options.sizes]
    work = {
        1: lambda path: figure_1(runs, [descents[-1], stochastic[-1]], path),
        2: lambda path: error_panels(runs, descents, path),
        3: lambda path: error_panels(runs, stochastic, path),
        4: lambda path: error_panels(runs, proximal, path),
    }
    for number in options.figures:
        work[number](options.out / f"iacv_figure{number}.png")
    words = [f"--{name.replace('_', '-')} {_join(value)}" for name, value in vars(options).items() if name != "out"]
    text = "\n".join([
        "# IACV: figures 1 to 4 of the paper\n",
        f"`python scripts/papers/iacv_figures.py {' '.join(words)}`\n",
        f"{environment()}; one thread. Medians over {options.repeats} repeats; Err_approx and relative CV error.\n",
        summary(runs),
        "\nExact: all left-out fits advance together in blocked matrix products, which is faster than one by one.",
        "Figures: " + ", ".join(f"iacv_figure{k}.png" for k in options.figures) + ".",
        "",
    ])  # fmt: skip
    print(text)
    (options.out / "iacv_figures.md").write_text(text, encoding="utf-8")
    (options.out / "iacv_figures.json").write_text(json.dumps(as_json(runs)) + "\n", encoding="utf-8")
    return 0


def _join(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())
