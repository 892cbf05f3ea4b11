"""Whether averages of near-best pairs predict two classes better than the pair: log loss of test rows beside L1's.

    python scripts/bench/real.py run --loss logistic --data FOLDER --out TWO      # first: L1 and the splits
    python scripts/bench/two_class_average.py run --lasso TWO --out FILE [--limit 2] [--sets ...] [--seconds S]
    python scripts/bench/two_class_average.py report --out FILE [--results results]

For every set and split one search, ended after `--limit` seconds of the processor; then its near-best pairs are
averaged, their log odds and their probabilities, and the average of log odds is put on the best subset that misses it
by little.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import _batches  # noqa: F401  (one thread, before numpy is loaded)
import numpy as np
from real import OF_CLASSES

from sparsecv_mio.batch.estimators import processor_limit
from sparsecv_mio.batch.one_task import BatchFolder, TaskOutcome, task_folds, task_rows
from sparsecv_mio.batch.plan import Task, make_tasks
from sparsecv_mio.certificate.predicting import probabilities
from sparsecv_mio.problem.glm_objective import weighted_losses
from sparsecv_mio.search.answer import average
from sparsecv_mio.search.api import cross_validate
from sparsecv_mio.words import Loss

AVERAGE_SECONDS = 5.0  # of the processor, that the average may take after the search
KINDS = {"pair": "pair", "log_odds": "average of log odds", "probabilities": "average of probabilities",
         "averaged": "averaged model"}  # fmt: skip


def lassos(ask: argparse.Namespace) -> Iterator[TaskOutcome]:
    """Yield what L1 did on every set and split, split by split."""
    wanted = [
        one for one in BatchFolder(ask.lasso).outcomes(every=True) if one.task["settings"]["estimator"] == "lasso"
    ]
    of_sets = [one for one in wanted if one.state == "done" and one.task["data"] in ask.sets]
    yield from sorted(of_sets, key=lambda one: (one.task["settings"]["split"], ask.sets.index(one.task["data"])))


def compared(lasso: TaskOutcome, limit: float) -> dict[str, Any]:
    """Search the training rows of a split, and score all models on its test rows."""
    source, settings = lasso.task["source"], lasso.task["settings"]
    how = {"folds": settings["folds"], "test": settings["test"], "split": settings["split"], "loss": "logistic"}
    (task,) = make_tasks({"data": [source], "vary": {**how, "estimator": "sparsecv"}}, Path("/"))
    found, rows = list[Any](), task_rows(task)
    assert rows.test is not None and isinstance(task, Task)
    test, plan = rows.test, task_folds(task, rows.train)
    with processor_limit(limit) as stop:
        record = cross_validate(
            rows.train, plan, gammas=None, taus=None, loss="logistic", threads=1, stop=stop, found=found.append
        )
    until = time.process_time() + AVERAGE_SECONDS
    asked = replace(record, request=replace(record.request, model="average"))
    averaged = average.with_average(asked, found[-1], lambda: time.process_time() > until).average
    assert averaged is not None

    def loss_at(log_odds: Any) -> float:
        return float(weighted_losses(test, Loss.LOGISTIC, log_odds).mean())

    def log_odds(model: Any) -> Any:
        columns = [test.names.index(name) for name in model.coefficients]
        return test.X[:, columns] @ np.array(list(model.coefficients.values())) + model.intercept

    weights = np.array([pair.weight for pair in averaged.pairs])
    fits = average.fits_of_pairs(found[-1], np.flatnonzero(weights))
    of_pairs, shares = np.array([log_odds(fits[i]) for i in fits]), weights[list(fits)]
    chance = np.clip(shares @ probabilities(of_pairs), 1e-15, 1.0 - 1e-15)
    models = {
        "pair": loss_at(log_odds(record)), "log_odds": loss_at(shares @ of_pairs),
        "probabilities": loss_at(np.log(chance) - np.log1p(-chance)), "averaged": loss_at(log_odds(averaged.model)),
    }  # fmt: skip
    return {
        "data": lasso.task["data"], "split": settings["split"], "n": rows.train.n, "p": rows.train.p,
        "status": record.status, "lasso": lasso.numbers["test_error"], "lasso_features": lasso.numbers["features"],
        **models, "pair_features": len(record.support), "averaged_features": len(averaged.model.support),
        "pairs": len(averaged.used),
    }  # fmt: skip


def run(ask: argparse.Namespace) -> int:
    """Compare what is left to compare."""
    begin, place = time.monotonic(), Path(ask.out)
    known = [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []
    done = {(one["data"], one["split"]) for one in known}
    for lasso in lassos(ask):
        if (lasso.task["data"], lasso.task["settings"]["split"]) in done:
            continue
        if ask.seconds is not None and time.monotonic() - begin > ask.seconds:
            print("stopped: the same command carries on")
            return 130
        with place.open("a") as file:
            file.write(json.dumps(compared(lasso, ask.limit)) + "\n")
    return 0


def report(ask: argparse.Namespace) -> int:
    """Write `two_class_average.md` and `.csv`."""
    import pandas as pd

    frame = pd.read_json(ask.out, lines=True).drop_duplicates(["data", "split"])
    for kind in KINDS:
        frame[kind] /= frame["lasso"]
    head = [
        "data",
        "n",
        "p",
        "splits",
        "L1",
        *KINDS.values(),
        "features: pair",
        "averaged model",
        "L1",
        "pairs averaged",
    ]
    lines, means = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)], []
    for name in [name for name in OF_CLASSES if (frame["data"] == name).any()]:
        here = frame[frame["data"] == name]
        ratios = {kind: here[kind].to_numpy(dtype=float) for kind in KINDS}
        root = max(len(here) - 1, 1) ** 0.5
        ends = [f"{float(ratio.mean()):.3f} ± {float(ratio.std()) / root:.3f}" for ratio in ratios.values()]
        sizes = [f"{float(here[f'{of}_features'].mean()):.1f}" for of in ("pair", "averaged", "lasso")]
        n, p, splits = (str(number) for number in (int(here["n"].iloc[0]), int(here["p"].iloc[0]), len(here)))
        cells = [name, n, p, splits, f"{float(here['lasso'].mean()):.3f}", *ends, *sizes]
        lines.append("| " + " | ".join([*cells, f"{float(here['pairs'].mean()):.0f}"]) + " |")
        share = {f"{of} features": float((here[f"{of}_features"] / here["lasso_features"]).mean())
                 for of in ("pair", "averaged")}  # fmt: skip
        means.append({kind: float(here[kind].mean()) for kind in KINDS} | share)
    sets = pd.DataFrame(means)
    said = [
        f"* {words}: mean of the sets {sets[kind].mean():.3f}, geometric {np.exp(np.log(sets[kind]).mean()):.3f}, no "
        f"more than 1 on {int((sets[kind] <= 1.0).sum())} of {len(sets)}, no more than the pair on "
        f"{int((sets[kind] <= sets['pair']).sum())}"
        for kind, words in KINDS.items()
    ]
    said.append(
        f"* features over L1's: the pair {sets['pair features'].mean():.2f}, the averaged model "
        f"{sets['averaged features'].mean():.2f}"
    )
    text = [
        "# Averages of two classes", "",
        "`python scripts/bench/two_class_average.py`. Test log loss over L1's of the same split (mean of splits and "
        "its standard error; the first column is L1's own). Every "
        f"search has {ask.limit:g} s of the processor, its pairs are estimates where it is not proved, and the average "
        f"at most {AVERAGE_SECONDS:g} s more.", "", *lines, "", *said, "",
    ]  # fmt: skip
    place = Path(ask.results)
    place.mkdir(parents=True, exist_ok=True)
    (place / "two_class_average.md").write_text("\n".join(text), encoding="utf-8")
    frame.sort_values(["data", "split"]).to_csv(place / "two_class_average.csv", index=False, float_format="%.6g")
    print("\n".join(text))
    return 0


def main() -> int:
    """Run the study, or report what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("run", "report"))
    parser.add_argument("--out", required=True, metavar="FILE", help="lines of JSON: read, and added to")
    parser.add_argument("--lasso", metavar="FOLDER", help="of real.py: its results of L1, by whose splits all go")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds of the processor a search [2]")
    parser.add_argument("--seconds", type=float, help="end `run` after so many")
    parser.add_argument("--sets", nargs="+", choices=OF_CLASSES, default=list(OF_CLASSES))
    parser.add_argument(
        "--results", default="build/results", metavar="FOLDER", help="where `report` writes [build/results]"
    )
    ask = parser.parse_args()
    return run(ask) if ask.do == "run" else report(ask)


if __name__ == "__main__":
    sys.exit(main())
