"""Test errors of the averaged model beside those of the best pair, with the package's own searches, and of peers.

    python scripts/bench/average.py run --out FOLDER [--splits 20] [--draws 5] [--limit 1] [--sets ...] [...]
    python scripts/bench/average.py report --out FOLDER [--results results]

Real sets: random splits, 80% of the rows to fit and 20% to score, as in `real.py`, seeds 0 to 19 (the constants of the
rule were set on seeds 100 to 107); errors of peers are taken from `results/real_data.csv` where they are there.
Synthetic ones: the design of `hastie.py` at rho 0.35, the error known from the truth, the lasso beside it. Every method
chooses by the same ten folds; our searches end at a limit on processor time (`--limit`), an average comes after it, and
every model of ours is of one search:

pair         the pair with the least CV error
average      the model of `--model average`; `1%`, `2%`: it may miss the average by so much of the least CV error
mean         the average itself, which has many features
support      the features of the pair, their coefficients those nearest to the average
absolute     as average, pairs weighted by absolute errors; `clipped` by squared errors cut at 25 times their median

A line of JSON a split is added to FOLDER/runs.jsonl; what is there is not done again.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _batches  # noqa: F401  (one thread, before numpy is loaded)
import numpy as np
from hastie import BETAS, SIZES, draw_of
from real import SLOW, TARGETS, place_of

from sparsecv_mio.batch.estimators import processor_limit, run_estimator
from sparsecv_mio.batch.one_task import collect_numbers, task_folds, task_rows
from sparsecv_mio.batch.plan import Task, make_tasks
from sparsecv_mio.problem.objective import weights_of_pairs
from sparsecv_mio.search import api
from sparsecv_mio.search.answer import average
from sparsecv_mio.search.api import cross_validate, nested_cross_validate
from sparsecv_mio.search.deadline import Deadline
from sparsecv_mio.search.options import Hooks, SearchOptions

KNOWN = Path(__file__).resolve().parents[2] / "results" / "real_data.csv"
PEERS = ("lasso", "relaxed-lasso", "abess", "ridge")
SNRS = (0.25, 1.22, 6.0)
NESTED = ("prostate", "toxicity", "diabetes", "housing", "hitters", "servo", "alcohol2")  # searched in a second
LONG = "topgear_int"  # the lasso takes a minute a run: only where it is known already
ROBUST = ("topgear", "topgear_int", "toxicity", "hitters")  # sets on which pairs are weighted by robust losses too
SECONDS = 100.0  # of the clock, for an average after the limit: other work on the machine is to change nothing
CLIPPED_AT = 25.0  # times the median squared error of the pair

Model = tuple[np.ndarray, float]


def settings(ask: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tasks, a name of its own for each: one split of every set after the other, then draws."""
    places = {name: place_of(name, ask) for name in ask.sets}
    for split, (name, place) in itertools.product(range(ask.first_split, ask.splits), places.items()):
        if place is not None:
            data = {"file": str(place.resolve()), "target": TARGETS[name]}
            yield f"{name} {split}", {"data": [data], "vary": {"folds": "10", "test": 0.2, "split": split}}
    for draw in range(ask.draws):
        for size, kind, snr in itertools.product(SIZES, ("1", "5"), SNRS):
            n, p, support = SIZES[size]
            setting: dict[str, Any] = {
                "design": "toeplitz", "name": f"{size} {BETAS[kind]} {snr}", "n": n, "p": p, "support": support,
                "beta": BETAS[kind], "rho": 0.35, "snr": snr, "draw": draw_of(size, kind, 0.35, snr, 70 + draw),
            }  # fmt: skip
            yield f"{size} {BETAS[kind]} {snr} {draw}", {"data": [setting], "vary": {"folds": "10"}}


class Kept:
    """What the search of a task knew when its record was made: `with_average` is handed it."""

    def __init__(self) -> None:
        self.snapshot: Any = None
        self.seconds = 0.0
        self._real = average.with_average

    def with_average(self, record: Any, snapshot: Any, *args: Any, **kwargs: Any) -> Any:
        """Stand in for the function of that name."""
        self.snapshot, begin = snapshot, time.process_time()
        found = self._real(record, snapshot, *args, **kwargs)
        self.seconds = time.process_time() - begin
        return found


def dense(model: Any, names: tuple[str, ...]) -> Model:
    """Return coefficients of all columns, and the intercept."""
    return np.array([model.coefficients.get(name, 0.0) for name in names]), model.intercept


def robust_weights(snapshot: Any, kind: str) -> tuple[np.ndarray, float]:
    """Return weights of the pairs by absolute or clipped errors, and the share of what the model may miss."""
    context, cells = snapshot.context, snapshot.cells
    shape = cells.nominal.shape[:2]
    known = np.flatnonzero(np.isfinite(cells.nominal).all(axis=2).ravel())
    gamma, tau = np.unravel_index(known, shape)
    squares = average.held_out_losses(context, cells, (gamma, tau))
    plain = squares.mean(axis=1)
    clipped = np.minimum(squares, CLIPPED_AT * np.median(squares, axis=1)[:, None])
    errors = np.sqrt(squares) if kind == "absolute" else clipped
    best = int(np.argmin(errors.mean(axis=1)))
    found = np.full(shape, np.inf)
    distance = average.distances_of_pairs(errors, errors[best], np.ones(context.data.n))
    found.ravel()[known] = distance
    share = float(clipped[best].mean() / plain.min())
    return weights_of_pairs(found.ravel()), share


def our_models(record: Any, snapshot: Any, names: tuple[str, ...], robust: bool) -> dict[str, Model]:
    """Return every model that comes from one search."""
    context, found = snapshot.context, {"pair": dense(record, names)}
    if record.average is None:
        return found
    found["average"] = dense(record.average.model, names)
    grid, rows = context.grid, context.data.dataset
    weights = np.array([pair.weight for pair in record.average.pairs])
    mean = average.mean_model(rows, average.fits_of_pairs(snapshot, np.flatnonzero(weights)), weights)
    found["mean"] = mean.coefficients, mean.intercept
    target, most = mean.predictions(rows), int(grid.taus[-1])

    def put(mean: Any, share: float) -> Model:
        clock, allowed = Deadline(SECONDS, None), share * record.cv_error
        return dense(average.project_mean_model(context.data, mean, allowed, most, 2048, clock.has_expired)[0], names)

    found |= {"1%": put(mean, 0.01), "2%": put(mean, 0.02)}
    chosen = [names.index(name) for name in record.support]
    X, centre = rows.X[:, chosen], rows.X[:, chosen].mean(axis=0)
    beta = np.zeros(len(names))
    beta[chosen] = np.linalg.lstsq(X - centre, target - target.mean(), rcond=None)[0]
    found["support"] = beta, float(target.mean() - centre @ beta[chosen])
    for kind in ("absolute", "clipped") if robust else ():
        weights, share = robust_weights(snapshot, kind)
        other = average.mean_model(rows, average.fits_of_pairs(snapshot, np.flatnonzero(weights)), weights)
        found[kind] = put(other, 0.005 * min(share, 1.0))
    return found


def known_peers(name: str) -> dict[str, tuple[float, int]]:
    """Return test errors and features of peers on the same split, as `real.py` stored them."""
    set_of, split = name.split()[0], name.split()[-1]
    with KNOWN.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["data"], row["split"]) == (set_of, split)]
    return {
        row["estimator"]: (float(row["test_error"]), int(row["features"]))
        for row in rows if row["estimator"] in PEERS and row["test_error"]
    }  # fmt: skip


def run_one(name: str, plan: dict[str, Any], limit: float) -> dict[str, Any]:
    """Run all methods on one task."""
    (task,) = make_tasks({**plan, "vary": {**plan["vary"], "estimator": "lasso"}}, Path("/"))
    rows = task_rows(task)
    folds = task_folds(task, rows.train)
    kept, spent = Kept(), time.process_time()
    average.with_average, api.GRACE = kept.with_average, SECONDS
    try:
        with processor_limit(limit) as stop:
            record = cross_validate(
                rows.train, folds, gammas=None, taus=None, model="average", own_error=True, threads=1,
                hooks=Hooks(stop=stop),
            )  # fmt: skip
    finally:
        average.with_average = kept._real
    out: dict[str, Any] = {
        "name": name, "n": rows.train.n, "p": rows.train.p, "status": record.status, "cv_error": record.cv_error,
        "seconds": time.process_time() - spent, "average_seconds": kept.seconds, "tau": record.tau,
    }  # fmt: skip
    if record.average is not None:
        used = record.average.used
        out |= {
            "averaged": len(used), "estimates": sum(pair.estimate for pair in used),
            "proved": record.average.model.proved, "missed": record.average.missed / record.average.allowed,
        }  # fmt: skip
        if record.average.within_folds is not None:
            out["within"] = record.average.within_folds.error
        if name.split()[0] in NESTED:
            options = SearchOptions.of(model="average", threads=1)
            again = nested_cross_validate(rows.train, folds, 10, None, None, options, Hooks())
            out["nested"] = None if again.nested is None else again.nested.error
    models = our_models(record, kept.snapshot, rows.train.names, name.split()[0] in ROBUST)
    out["errors"] = {kind: of_model(task, rows, *model) for kind, model in models.items()}
    known = known_peers(name)
    out["errors"] |= known
    for peer in PEERS if name.split()[0] in TARGETS else ("lasso",):
        if peer in known or (name.startswith(LONG) and peer in ("lasso", "relaxed-lasso")):
            continue
        try:
            fitted = run_estimator(peer, rows.train, folds, {})
            assert fitted.model is not None, f"{peer} has no model"
            out["errors"][peer] = of_model(task, rows, *fitted.model)
        except Exception as error:
            print(f"{name}: {peer}: {error}", file=sys.stderr, flush=True)
    return out


def of_model(task: Task, rows: Any, coefficients: np.ndarray, intercept: float) -> tuple[float, int]:
    """Return the test error of a model, relative to the noise where the truth is known, and its features."""
    from sparsecv_mio.batch.peers import Fitted, RawModel

    found = collect_numbers(task, rows, Fitted(RawModel(coefficients, intercept), 0.0, {}))
    error = found["relative_test_error"] if "relative_test_error" in found else found["test_error"]
    return float(error), int(found["features"])


def run(ask: argparse.Namespace) -> int:
    """Run what is left."""
    place = Path(ask.out) / "runs.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    done = {json.loads(line)["name"] for line in place.read_text().splitlines()} if place.exists() else set()
    begin = time.process_time()
    with place.open("a") as file:
        for name, plan in settings(ask):
            if name not in done:
                file.write(json.dumps(run_one(name, plan, ask.limit)) + "\n")
                file.flush()
                print(f"{name}, {(time.process_time() - begin) / 60.0:.1f} CPU minutes", flush=True)
    return 0


def main() -> int:
    """Run the study, or report what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("run", "report"))
    parser.add_argument("--out", required=True, metavar="FOLDER", help="of the runs: read, and added to")
    parser.add_argument(
        "--results", default="build/results", metavar="FOLDER", help="where `report` writes [build/results]"
    )
    parser.add_argument("--longer", metavar="FOLDER", help="of runs with a longer limit, which `report` sets beside")
    parser.add_argument("--data", nargs="*", default=[], metavar="FOLDER", help="folders of further files")
    parser.add_argument("--sets", nargs="*", default=[name for name in TARGETS if name not in SLOW])
    parser.add_argument("--splits", type=int, default=20, help="end of the seeds of the splits of real sets [20]")
    parser.add_argument("--first-split", type=int, default=0, help="the first seed [0]")
    parser.add_argument("--draws", type=int, default=5, help="draws of each synthetic setting [5]")
    parser.add_argument("--limit", type=float, default=1.0, help="seconds of the processor a search of ours [1]")
    ask = parser.parse_args()
    if ask.do == "run":
        return run(ask)
    from _average_report import report

    return report(ask)


if __name__ == "__main__":
    sys.exit(main())
