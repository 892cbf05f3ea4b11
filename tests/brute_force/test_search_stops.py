"""A search stopped at any step leaves what is true, and goes on to the answer of a search that was not stopped.

Small random problems of every loss, in ten folds and leave-one-out. Each search is stopped several times in turn: by a
limit of a clock that runs ahead, by its stop event, or by SIGINT in the caller. Every record on the way is compared
with an enumeration of all supports.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import glm_claims
import judge
import numpy as np
import pytest
from glm_cases import GlmCase
from slow import slow
from stops import SetWhenAsked, clock_ahead, interrupt_after, limit_after
from zoo import RandomProblem

import sparsecv_mio
from sparsecv_mio.data.loss_targets import as_counts, as_two_classes
from sparsecv_mio.errors import OutOfTime

LOSSES = ("squared", "logistic", "poisson")
FOLDS = ("10", "loo")
QUICK = [("squared", "loo", 0), ("logistic", "10", 6), ("poisson", "loo", 4)]
STOPS = ("limit", "event", "SIGINT")
SAME_RTOL = 1e-8  # of two CV errors of the same supports
ROUNDING = 1e-12  # of a bound that is computed again


class StopCase(GlmCase):
    """A problem of any loss, searched by the function that takes Ctrl-C."""

    def solve(self, **hooks: Any) -> Any:
        """Search the grid with the options of the case."""
        grid = {"gammas": self.gammas, "taus": self.taus}
        return sparsecv_mio.solve(self.data, folds=self.folds, loss=self.loss, **grid, **self.how, **hooks)

    def faults_of(self, record: Any) -> Iterator[str]:
        """Yield what enumeration and `verify` contradict in a record."""
        if self.loss == "squared":
            options = self.how["scale"], "fold"
            yield from judge.wrong(RandomProblem(self.data, self.folds, self.gammas, self.taus, *options), record)
        else:
            yield from glm_claims.of_search(self.truth, record)
        again = type(record).from_json(record.to_json())
        yield from (f"verify: {failure}" for failure in sparsecv_mio.verify(again, self.data, self.folds).failures)


def draw_case(loss: str, folds: str, seed: int) -> StopCase:
    """Draw correlated columns, two of them nearly equal in every third problem, and a target of the loss."""
    rng = np.random.default_rng([62, seed])
    n, p = int(rng.integers(12, 17) if folds == "loo" else rng.integers(22, 41)), int(rng.integers(3, 6))
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 1.0]) * rng.normal(size=(n, 1))
    if seed % 3 == 0:
        X[:, 0] = X[:, 1] + 10.0 ** rng.uniform(-3, -1) * X[:, 0]
    score = X @ (rng.normal(size=p) * (rng.random(p) < 0.7))
    if loss == "squared":
        data = sparsecv_mio.Dataset.from_arrays(X, score + rng.normal(size=n))
    elif loss == "logistic":
        y = score + rng.logistic(size=n) > np.median(score)
        y[:4] = [False, True, False, True]
        data = as_two_classes(sparsecv_mio.Dataset.from_arrays(X, y.astype(float)))
    else:
        counts = rng.poisson(np.exp(np.clip(score, -3.0, 3.0)))
        counts[:2] += 1
        data = as_counts(sparsecv_mio.Dataset.from_arrays(X, counts.astype(float)), None)
    options = {
        "scale": str(rng.choice(["length", "variance", "none"])),
        "intercept": "fold",
        "gap": float(rng.choice([0.0, 1e-4])),
        "one_se": bool(rng.random() < 0.25),
        "threads": int(rng.integers(1, 3)),
    }
    gammas = sorted((10.0 ** rng.uniform(-2, 1, size=2)).tolist())
    return StopCase(
        loss, data, sparsecv_mio.make_folds(folds, data, seed), gammas, list(range(1, min(p, 4) + 1)), options
    )


def count_steps(case: StopCase) -> tuple[Any, dict[str, int]]:
    """Return the record of a search that is not stopped, and how often it reads the clock and looks at its event."""
    steps = dict.fromkeys(STOPS, 0)

    def read(number: int) -> None:
        steps["limit"] = steps["SIGINT"] = number

    class CountedEvent(threading.Event):
        def is_set(self) -> bool:
            steps["event"] += 1
            return False

    with clock_ahead(0.0, read):
        return case.solve(stop=CountedEvent()), steps


def stop_search(case: StopCase, stop: str, step: int, hooks: dict[str, Any]) -> Any:
    """Stop a search at a step; return its record, or None where SIGINT or the limit left no time to make one."""
    if stop == "limit":
        with limit_after(step) as seconds:
            try:
                return case.solve(time_limit=seconds, **hooks)
            except OutOfTime:
                return None
    interrupted = interrupt_after(step) if stop == "SIGINT" else nullcontext()
    with interrupted:
        try:
            return case.solve(**hooks, **({"stop": SetWhenAsked(step)} if stop == "event" else {}))
        except KeyboardInterrupt:
            return None


def answer_of(record: Any) -> tuple[Any, ...]:
    """Return what must not depend on the stops."""
    return record.status, record.gamma, record.tau, record.support, record.refit.proved


def stopped_records(case: StopCase, steps: dict[str, int], seed: int, store: Path) -> Iterator[tuple[str, Any]]:
    """Yield the records of a search that is stopped once in every way, and of the same search resumed to its end."""
    rng = np.random.default_rng([63, seed])
    for life in range(len(STOPS)):
        stop = STOPS[(seed + life) % len(STOPS)]
        share = rng.uniform(0.0, 1.0)
        step = max(1, int(steps[stop] ** share if rng.random() < 0.5 else steps[stop] * share))
        yield f"{stop} at {step}", stop_search(case, stop, step, store_in(store))
    yield "resumed", case.solve(**store_in(store))


def store_in(store: Path) -> dict[str, Path]:
    """Return the hooks that resume a search from a checkpoint, or begin one."""
    return {"resume" if store.exists() else "checkpoint": store}


def check_stops(loss: str, folds: str, seed: int, folder: Path) -> int:
    """Check every record of a search that is stopped and resumed; return how many stops came in time."""
    case = draw_case(loss, folds, seed)
    whole, steps = count_steps(case)
    records = [("whole", whole), *stopped_records(case, steps, seed, folder / "run.ck")]
    faults = [f"{life}: {fault}" for life, record in records if record is not None for fault in case.faults_of(record)]
    assert not faults, (seed, case.how, faults)
    resumed = records[-1][1]
    assert answer_of(resumed) == answer_of(whole), (seed, case.how)
    assert resumed.cv_error == pytest.approx(whole.cv_error, rel=SAME_RTOL), (seed, case.how)
    return sum(record is None or record.status != "proved" for _, record in records)


def lost_bounds(before: Any, after: Any) -> list[str]:
    """Return the pairs whose interval is wider in the later record, beyond rounding."""
    known = {(row.gamma, row.tau): row for row in before.table}
    return [
        f"{known[row.gamma, row.tau]} -> {row}"
        for row in after.table
        if row.lower < known[row.gamma, row.tau].lower * (1.0 - ROUNDING)
        or row.upper > known[row.gamma, row.tau].upper * (1.0 + ROUNDING)
    ]


@pytest.fixture(autouse=True)
def plain_interrupts() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, whatever handler the test run has."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("loss", "folds", "seed"),
    [*QUICK, *slow(case for case in product(LOSSES, FOLDS, range(40)) if case not in QUICK)],
)
def test_stopped_and_resumed(loss: str, folds: str, seed: int, tmp_path: Path) -> None:
    assert check_stops(loss, folds, seed, tmp_path) > 0 or (loss, folds, seed) not in QUICK


@pytest.mark.slow
@pytest.mark.parametrize("folds", FOLDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_stop_loses_no_bound(loss: str, folds: str, tmp_path: Path) -> None:
    for seed in range(12):
        case = draw_case(loss, folds, seed)
        records = [record for _, record in stopped_records(case, count_steps(case)[1], seed, tmp_path / f"{seed}.ck")]
        made = [record for record in records if record is not None]
        assert not [lost for before, after in pairwise(made) for lost in lost_bounds(before, after)], seed
