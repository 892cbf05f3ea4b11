"""Runs that must end: every search, list and fit on data made to lose digits, each with a time limit.

`PYTHONPATH=.:tests/support python tests/campaign/ends.py FIRST COUNT [FILE]` tries runs FIRST, FIRST + 1, .. and
adds a line to FILE for each: what was asked, seconds of the wall and of the processor, and what was wrong. A run is
wrong if it ends in anything but an answer or one line, warns, has an interval that enumeration contradicts, or a record
that `verify` refuses; it is late if it takes longer than its limit + 1 s + 5 %, twice. A busy machine makes runs late:
try those again alone.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from truth import Optima, Truth
from zoo import RandomProblem, random_restrictions

from sparsecv_mio.certificate.records import PathRecord, Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.fold_plan import FoldPlan
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.weights import weighted
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.model_space import Restrictions
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.search.api import cross_validate

FOLDS = ("loo", "loo", "3", "5", "blocks:3", "2x2", "3x2", "forward:3", "stratified:3", "holdout:0.3", "groups:g")
METHODS = ("auto", "rounds", "joint", "algorithm1", "grid", "bounds", "descent")
ENGINES = ("auto", "enumerate", "shared", "per-fold")
WHAT = ("solve",) * 8 + ("interval",) * 3 + ("path",) * 2 + ("surface",) * 2 + ("near",) * 2 + ("fit", "common")
FEW = 8  # columns up to which every support is tried
LATE = 1.0, 1.05  # seconds, and share of the limit, that a run may take
SURE, LOOSE = 0.9e-9, 1.1e-9  # ties on both sides of the engine's 1e-9
H_RTOL, H_FLOOR = 1e-7, 1e-10


@dataclass(frozen=True)
class Run:
    """One run: all of it follows from the seed."""

    seed: int
    what: str
    data: Dataset
    plan: FoldPlan
    limit: float
    asked: dict[str, Any]

    def go(self) -> Any:
        """Start it, and return the record."""
        asked, limit = dict(self.asked), self.limit
        if self.what in ("solve", "interval"):
            return cross_validate(self.data, self.plan, time_limit=limit, **asked)
        if self.what in ("path", "surface"):
            return best_subsets(self.data, time_limit=limit, **asked)
        if self.what == "near":
            return near_optimal(self.data, self.plan, time_limit=limit, **asked)
        if self.what == "common":
            return best_common_subset(self.data, self.plan, time_limit=limit, **asked)
        return fit_one(self.data, limits=Limits(seconds=limit), **asked)


def numbers(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Columns and target: offsets to 1e9, near copies, units of 1e-150 to 1e150, rows twice, constant columns."""
    wide = rng.random() < 0.2
    n = int(rng.integers(40, 160) if wide else rng.integers(5, 28))
    p = int(rng.integers(12, 70) if wide else rng.integers(1, FEW + 1))
    X = rng.normal(size=(n, p))
    kind = rng.choice(["normal", "whole", "signs", "one-hot", "correlated"])
    if kind == "whole":
        X = np.round(X)
    elif kind == "signs":
        X = np.where(X > 0.0, 1.0, -1.0)
    elif kind == "one-hot":
        X = np.eye(p)[rng.integers(0, p, n)]
    elif kind == "correlated":
        X = X + 3.0 * rng.normal(size=(n, 1))
    beta = rng.normal(size=p) * (rng.random(p) < 0.5)
    y = X @ beta + rng.choice([0.0, 1e-9, 1e-4, 1.0, 1.0, 1.0]) * rng.normal(size=n)
    if rng.random() < 0.3 and p > 1:
        of = int(rng.integers(p - 1))
        X[:, -1] = rng.choice([1.0, -1.0]) * X[:, of] + rng.choice([0.0, 1e-8, 1e-8, 1e-4]) * rng.normal(size=n)
    if rng.random() < 0.3:
        X = X + 10.0 ** rng.uniform(0, 9) * rng.choice([0.0, 1.0, -1.0], size=p)
    if rng.random() < 0.3:
        y = y + 10.0 ** rng.uniform(0, 9) * rng.choice([1.0, -1.0])
    if rng.random() < 0.2:
        twice = rng.integers(0, n, max(1, n // 3))
        X[: len(twice)], y[: len(twice)] = X[twice], y[twice]
    if rng.random() < 0.1:
        X[:, int(rng.integers(p))] = rng.choice([0.0, 1.0, 1e9])
    if rng.random() < 0.2:
        X = X * 10.0 ** (rng.uniform(-150, 150, p) if rng.random() < 0.5 else rng.uniform(-150, 150))
        y = y * 10.0 ** rng.uniform(-150, 150)
    if rng.random() < 0.05:
        y = np.round(y)
    return X, y


def drawn(seed: int) -> Run:
    """Draw a run; raises BadInput where its data, folds or weights cannot be."""
    rng = np.random.default_rng([26, seed])
    X, y = numbers(rng)
    n, p = X.shape
    what, names = str(rng.choice(WHAT)), tuple(f"x{j}" for j in range(p))
    data = Dataset.from_arrays(X, y, names=names, aux={"g": rng.integers(0, 4, n)})
    spec, weighed = str(rng.choice(FOLDS)), rng.random() < 0.25

    def deal(rows: Dataset) -> FoldPlan:
        return make_folds(spec, rows, seed)

    if weighed:
        share = 10.0 ** rng.uniform(-3, 3, n) * (rng.random(n) < 0.8)
        data, plan = weighted(data, share, deal, name="w")
    else:
        plan = deal(data)
    gammas = sorted(float(g) for g in 10.0 ** rng.uniform(-8, 4, int(rng.integers(1, 5))))
    most = min(p, 10)
    taus = sorted({int(t) for t in rng.integers(0, most + 1, int(rng.integers(1, 6)))})
    how = {"scale": str(rng.choice(["length", "variance", "none"])),
           "intercept": str(rng.choice(["fold", "global", "none"]))}  # fmt: skip
    limit = round(float(10.0 ** rng.uniform(np.log10(0.2), np.log10(5.0))), 3)
    asked = how | _asked(rng, what, gammas, taus, names)
    return Run(seed, what, data, plan, limit, asked)


def _asked(rng: np.random.Generator, what: str, gammas: list[float], taus: list[int], names: tuple[str, ...]) -> Any:
    restrictions = Restrictions()
    if rng.random() < 0.3:
        kinds = ["at_most", "hierarchy", "sign", "all"]
        restrictions = random_restrictions(rng, names, str(rng.choice(kinds)))
    forced = Restrictions(force_in=restrictions.force_in, force_out=restrictions.force_out)
    ends = f"{gammas[0]!r}..{gammas[0] * 10.0 ** rng.uniform(0.01, 3.0)!r}"
    gap = float(rng.choice([0.0, 1e-4, 0.05]))
    if what == "solve":
        method = "auto" if restrictions.beyond_forcing else str(rng.choice(METHODS))
        asked = {"gammas": gammas, "taus": taus, "gap": gap, "method": method, "restrictions": restrictions}
        if method in ("auto", "rounds") and not restrictions.beyond_forcing:
            asked["engine"] = str(rng.choice(ENGINES))
        if rng.random() < 0.1 and method not in ("descent", "bounds"):
            asked["refine"] = True
        if rng.random() < 0.1:
            asked["stability"] = float(rng.choice([0.1, 1.0]))
        return asked | {"threads": int(rng.integers(1, 3))}
    if what == "interval":
        return {"gammas": ends, "taus": taus, "gap": max(gap, 1e-4), "threads": 1}
    if what == "path":
        return {"gammas": gammas, "taus": taus, "restrictions": restrictions}
    if what == "surface":
        return {"gammas": ends, "taus": taus}
    if what == "near":
        given = {"gamma": None if rng.random() < 0.2 else gammas[0], "by": str(rng.choice(["cv", "objective"]))}
        most = None if rng.random() < 0.2 else int(rng.integers(1, 200))
        return given | {"taus": taus, "within": float(rng.choice([0.0, 0.01, 0.3])), "most": most,
                        "restrictions": forced}  # fmt: skip
    if what == "common":
        return {"gammas": gammas, "taus": taus, "gap": gap, "restrictions": forced}
    side = SideOptions(
        force_in=restrictions.force_in, force_out=restrictions.force_out, nonnegative=restrictions.nonnegative,
        nonpositive=restrictions.nonpositive, at_most=[(one.count, one.features) for one in restrictions.at_most],
        hierarchy=restrictions.hierarchy,
    )  # fmt: skip
    return {"tau": taus[-1], "gamma": gammas[0], "side": side if restrictions else None}


# -- what is true -----------------------------------------------------------------------------------------------------


def truth_of(run: Run) -> Truth:
    """Every support of every fold, where there are few columns and no weights."""
    restrictions = run.asked.get("restrictions", Restrictions())
    return Truth(RandomProblem(run.data, run.plan, [], [], run.asked["scale"], run.asked["intercept"], restrictions))


def wrong_cells(run: Run, record: Record) -> Iterator[str]:
    """Yield the rows of a table that enumeration contradicts."""
    truth, least = truth_of(run), np.inf
    for row in record.table:
        if row.cv_error is not None and 0.0 < row.upper < 1e-290:
            return  # products of such numbers have lost their digits
        low, high, loose_low, loose_high = truth.h(row.gamma, row.tau)
        if not all(map(np.isfinite, (low, high))):
            continue
        least = min(least, low)
        if row.lower > low:
            yield f"{(row.gamma, row.tau)}: lower {row.lower!r} above {low!r}"
        if row.upper < high:
            yield f"{(row.gamma, row.tau)}: upper {row.upper!r} below {high!r}"
        room = H_RTOL * loose_high
        if row.folds_decided == row.folds and not loose_low - room <= row.cv_error <= loose_high + room:
            yield f"{(row.gamma, row.tau)}: decided {row.cv_error!r} not in {(loose_low, loose_high)}"
    if record.certificate.lower > least and run.what == "solve":
        yield f"lower {record.certificate.lower!r} above {least!r}"


def wrong_fits(run: Run, record: PathRecord) -> Iterator[str]:
    """Yield the fits on all rows that enumeration contradicts."""
    rows = truth_of(run).rows(-1)
    unit = float(np.ldexp(1.0, rows.exponent)) ** 2
    for row in record.path:
        found: Optima = rows.optima(row.gamma, row.tau)
        at = int(np.argmin(found.value))
        best, error = found.value[at] * unit, found.value_error[at] * unit
        room = 1e-9 * best + 4.0 * error + 1e-300
        if 0.0 < row.upper < 1e-290:
            return
        if row.lower > best + room or row.upper < best - room:
            yield f"{(row.gamma, row.tau)}: [{row.lower!r}, {row.upper!r}] without {best!r}"
        if row.proved and row.objective > best * (1.0 + 1e-7) + 4.0 * room:
            yield f"{(row.gamma, row.tau)}: proved {row.objective!r}, the least is {best!r}"


def wrong(run: Run, record: Any) -> Iterator[str]:
    """Yield what is wrong with a record."""
    if run.data.p <= FEW and run.data.row_weights is None:
        if isinstance(record, Record) and run.what == "solve":
            yield from wrong_cells(run, record)
        elif isinstance(record, PathRecord):
            yield from wrong_fits(run, record)
    again = type(record).from_json(record.to_json())
    if FEW < run.data.p <= 15 or _long(run, getattr(record, "continuous", None)):
        return
    report = verify(again, run.data) if isinstance(record, PathRecord) or run.what == "fit" else verify(
        again, run.data, run.plan)  # fmt: skip
    yield from (f"verify: {one}" for one in report.failures[:4])


def _long(run: Run, found: Any) -> bool:
    """Whether `verify` would take more than a few seconds to enumerate the pieces of an interval."""
    return found is not None and len(found.pieces) * run.plan.k * 2.0**run.data.p > 1e4


def timed(run: Run) -> tuple[Any, float, float]:
    """The record, or the error in one line, with seconds of the wall and of the processor."""
    begin, cpu = time.monotonic(), time.process_time()
    try:
        record: Any = run.go()
    except (BadInput, OutOfTime) as error:
        record = error
    return record, time.monotonic() - begin, time.process_time() - cpu


def late(run: Run, wall: float) -> bool:
    """Whether a run took longer than its limit allows."""
    return wall > LATE[1] * run.limit + LATE[0]


def tried(seed: int) -> dict[str, Any]:
    """Draw a run, start it, and say what was wrong."""
    line: dict[str, Any] = {"seed": seed, "what": "none", "wrong": []}
    try:
        run = drawn(seed)
    except BadInput as error:
        return line | {"refused": str(error)}
    line |= {"what": run.what, "limit": run.limit, "n": run.data.n, "p": run.data.p, "folds": run.plan.spec}
    line |= {"method": run.asked.get("method"), "asked": repr(run.asked)[:400]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            record, wall, cpu = timed(run)
            line |= {"wall": round(wall, 2), "cpu": round(cpu, 2)}
            if late(run, wall):
                _, again, cpu = timed(run)
                line |= {"again": round(again, 2), "cpu_again": round(cpu, 2)}
                line["late"] = late(run, again)
        if isinstance(record, Exception):
            return line | {"refused": str(record)}
        line |= {"status": record.status}
        begin = time.monotonic()
        line["wrong"] += list(wrong(run, record))
        line |= {"judged": round(time.monotonic() - begin, 2)}
    except Exception:
        line["wrong"].append(traceback.format_exc()[-1500:])
    return line


def main(first: int, count: int, say: Callable[[str], Any]) -> int:
    """Try some runs and return how many were wrong."""
    bad = 0
    for seed in range(first, first + count):
        line = tried(seed)
        bad += bool(line["wrong"] or line.get("late"))
        say(json.dumps(line))
    return bad


if __name__ == "__main__":
    with Path(sys.argv[3] if len(sys.argv) > 3 else "/dev/stdout").open("a", buffering=1) as store:
        sys.exit(min(main(int(sys.argv[1]), int(sys.argv[2]), lambda text: store.write(text + "\n")), 1))
