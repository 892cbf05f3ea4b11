"""Runs that must end: every search, list and fit on data made to lose digits, each with a time limit.

A run is wrong if it ends in anything but an answer or one line, warns, has an interval that enumeration contradicts, or
a record that `verify` refuses; it is late if it takes longer than its limit + 1 s + 5 %, twice. A busy machine makes
runs late: try those again alone.
"""

from __future__ import annotations

import math
import os
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import judge
import numpy as np
import pytest
from counts import CAMPAIGN, COUNTS
from draws import METHODS
from judge import LOST
from truth import Optima, Truth
from zoo import FOLDS, KINDS, RESTRICTED, WEIGHTS, RandomProblem, hostile_problem

from sparsecv_mio.certificate.fit_records import PathRecord
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import BadInput, OutOfTime
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.fit_options import SideOptions
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.model_space import NONE, Restrictions
from sparsecv_mio.near.common_subset import best_common_subset
from sparsecv_mio.near.near_optimal import near_optimal
from sparsecv_mio.search.api import cross_validate

WHAT = ("solve",) * 8 + ("interval",) * 3 + ("path",) * 2 + ("surface",) * 2 + ("near",) * 2 + ("fit", "common")
FEW = 8  # columns up to which every support is tried
LATE = 1.0, 1.05  # seconds, and share of the limit, that a run may take


@dataclass(frozen=True)
class Run:
    """One run: all of it follows from the seed."""

    case: RandomProblem
    what: str
    limit: float
    asked: dict[str, Any]

    def go(self) -> Any:
        """Start it, and return the record."""
        data, plan, limit = self.case.data, self.case.folds, self.limit
        if self.what in ("solve", "interval"):
            return cross_validate(data, plan, time_limit=limit, **self.asked)
        if self.what in ("path", "surface"):
            return best_subsets(data, time_limit=limit, **self.asked)
        if self.what == "near":
            return near_optimal(data, plan, time_limit=limit, **self.asked)
        if self.what == "common":
            return best_common_subset(data, plan, time_limit=limit, **self.asked)
        return fit_one(data, limits=Limits(seconds=limit), **self.asked)


def drawn(seed: int) -> Run:
    """Draw a run; raises BadInput where its data, folds or weights cannot be."""
    rng = np.random.default_rng([26, seed])
    wide, what = rng.random() < 0.2, str(rng.choice(WHAT))
    kind, folds = str(rng.choice(KINDS)), str(rng.choice(FOLDS))
    weights = str(rng.choice(WEIGHTS[1:])) if rng.random() < 0.25 else "none"
    restricted = str(rng.choice(RESTRICTED[1:])) if rng.random() < 0.3 else "none"
    case = hostile_problem(seed, kind, folds, weights, restricted, 160 if wide else 28, 70 if wide else FEW)
    case = replace(case, taus=[tau for tau in case.taus if tau <= 10] or case.taus[:1])
    limit = round(float(10.0 ** rng.uniform(np.log10(0.2), np.log10(5.0))), 3)
    how = {"scale": case.scale, "intercept": case.intercept}
    return Run(case, what, limit, how | _asked(rng, what, case))


def _asked(rng: np.random.Generator, what: str, case: RandomProblem) -> dict[str, Any]:
    restrictions, gammas, taus = case.restrictions, case.gammas, case.taus
    forced = Restrictions(force_in=restrictions.force_in, force_out=restrictions.force_out)
    ends = f"{gammas[0]!r}..{gammas[0] * 10.0 ** rng.uniform(0.01, 3.0)!r}"
    gap = float(rng.choice([0.0, 1e-4, 0.05]))
    if what == "solve":
        method = "auto" if restrictions.side_constraints else str(rng.choice(METHODS))
        asked = {"gammas": gammas, "taus": taus, "gap": gap, "method": method, "restrictions": restrictions}
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


def wrong_fits(case: RandomProblem, record: PathRecord) -> Iterator[str]:
    """Yield the fits on all rows that enumeration contradicts."""
    rows = Truth(case).rows(-1)
    unit = float(np.ldexp(1.0, rows.exponent)) ** 2
    for row in record.path:
        found: Optima = rows.optima(row.gamma, row.tau)
        at = int(np.argmin(found.value))
        best, error = found.value[at] * unit, found.value_error[at] * unit
        room = 1e-9 * best + 4.0 * error + 1e-300
        if 0.0 < row.upper < LOST:
            return
        if row.lower > best + room or row.upper < best - room:
            yield f"{(row.gamma, row.tau)}: [{row.lower!r}, {row.upper!r}] without {best!r}"
        if row.proved and row.objective > best * (1.0 + 1e-7) + 4.0 * room:
            yield f"{(row.gamma, row.tau)}: proved {row.objective!r}, the least is {best!r}"


def wrong(run: Run, record: Any) -> Iterator[str]:
    """Yield what is wrong with a record."""
    case, asked = run.case, run.asked
    if case.data.p <= FEW and run.what == "solve":
        yield from judge.wrong(case, record)
    elif case.data.p <= FEW and isinstance(record, PathRecord):
        yield from wrong_fits(replace(case, restrictions=asked.get("restrictions", NONE)), record)
    again = type(record).from_json(record.to_json())
    if FEW < case.data.p <= 15 or _long(run, getattr(record, "continuous", None)):
        return
    report = verify(again, case.data) if isinstance(record, PathRecord) or run.what == "fit" else verify(
        again, case.data, case.folds)  # fmt: skip
    yield from (f"verify: {one}" for one in report.failures[:4])


def _long(run: Run, found: Any) -> bool:
    """Whether `verify` would take more than a few seconds to enumerate the pieces of an interval."""
    return found is not None and len(found.pieces) * run.case.folds.k * 2.0**run.case.data.p > 1e4


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


def tried(seed: int, longest: float = math.inf) -> dict[str, Any]:
    """Draw a run, start it with a limit of `longest` seconds at most, and say what was wrong."""
    line: dict[str, Any] = {"seed": seed, "what": "none", "wrong": []}
    try:
        run = drawn(seed)
        run = replace(run, limit=min(run.limit, longest))
    except BadInput as error:
        return line | {"refused": str(error)}
    data, plan = run.case.data, run.case.folds
    line |= {"what": run.what, "limit": run.limit, "n": data.n, "p": data.p, "folds": plan.spec}
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


FIRST = 1_000_000 * int(os.environ.get("FUZZ_SEED", "0"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + int(os.environ.get("FUZZ_EXAMPLES", "12"))))
def test_a_run_ends_with_what_is_true(seed: int) -> None:
    line = tried(seed) if CAMPAIGN else tried(seed, 0.8)
    COUNTS[f"ends: {line['what']} {line.get('status', 'refused in one line')}"] += 1
    assert not line["wrong"], line
    assert not (CAMPAIGN and line.get("late")), line
