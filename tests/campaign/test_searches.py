"""Every option at once on hostile data: each record against enumeration, and against runs that must say the same."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from counts import CAMPAIGN, COUNTS
from draws import METHODS, contradicted, drawn
from hypothesis import given, note
from hypothesis import strategies as st
from stops import limit_after
from zoo import KINDS, RandomProblem, hostile_problem, numbers

from sparsecv_mio.certificate.records import Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import folds_from_labels, make_folds
from sparsecv_mio.errors import BadInput, OutOfTime

H_RTOL = 1e-6  # of numbers that two runs compute in another order
SEEDS = st.integers(0, 2**31 - 1)
Case = tuple[RandomProblem, dict[str, Any]]  # a problem, and words of a search


def solved(what: str, case: RandomProblem, words: dict[str, Any]) -> Record | None:
    """A record that enumeration confirms; None where the request is refused in one line."""
    try:
        record = case.solve(**words)
    except BadInput as error:
        assert str(error) and "\n" not in str(error)
        COUNTS[f"{what}: refused in one line"] += 1
        return None
    record = Record.from_json(record.to_json())
    report = verify(record, case.data, case.folds)
    assert report.ok, (words, report.failures[:3])
    cells = len(record.table) * case.folds.k
    COUNTS[f"{what}: runs"] += 1
    COUNTS[f"{what}: cells"] += cells
    COUNTS[f"{what}: cells of pairs that enumeration confirms"] += 0 if report.caveat else cells
    return record


def any_case(seed: int) -> Case:
    """A problem and options that go together, without a limit."""
    draw = drawn(seed)
    return draw.problem, {name: word for name, word in draw.words.items() if name != "time_limit"}


def plain_case(seed: int) -> Case:
    """A problem without weights and restrictions, whose folds can be permuted with the rows; may raise `BadInput`."""
    rng, kind = np.random.default_rng([5, seed]), KINDS[seed % len(KINDS)]
    case = hostile_problem(seed, kind, "as drawn", "none", "none", rows=26, columns=7)
    folds = make_folds(str(rng.choice(["loo", "3", "4", "blocks:3"])), case.data, seed)
    words = {"method": str(rng.choice(METHODS)), "gap": float(rng.choice([0.0, 1e-4, 0.05])), "threads": 1}
    return replace(case, folds=folds), words


def agree(one: Record, other: Record, unit: float = 1.0, gamma_unit: float = 1.0) -> None:
    """Two runs of one problem: intervals overlap, pairs that both decided have one h; units are of the second."""
    others = {(round(math.log2(row.gamma / gamma_unit), 9), row.tau): row for row in other.table}
    for a in one.table:
        b = others.get((round(math.log2(a.gamma), 9), a.tau))
        if b is None:  # a descent went another way
            assert one.work.engine.startswith("descent")
            continue
        low, high, value = b.lower / unit, b.upper / unit, b.cv_error / unit
        note(f"{a} {b}")
        room = H_RTOL * max(min(a.upper, high), 0.0) if math.isfinite(min(a.upper, high)) else 0.0
        assert max(a.lower, low) <= min(a.upper, high) + room, (a, b)
        if a.folds_decided == b.folds_decided == a.folds:
            assert a.lower - room <= value <= a.upper + room or low - room <= a.cv_error <= high + room, (a, b)


@given(seed=SEEDS)
def test_every_record_against_enumeration(seed: int) -> None:
    draw = drawn(seed)
    assert [*contradicted(draw)] == [], (draw.kinds, draw.way, draw.words)
    COUNTS["any options: runs"] += 1
    COUNTS["any options: cells"] += len(draw.problem.gammas) * len(draw.problem.taus) * draw.problem.folds.k


def test_an_interval_of_an_instability_allows_for_rounding() -> None:
    """`verify` took that for an error where columns are near copies."""
    data = Dataset.from_arrays(*numbers(5147193, "near copies", 60))
    case = RandomProblem(data, make_folds("holdout:0.3", data, 5147193), [1e-8, 1.0], [2, data.p], "length", "none")
    assert solved("any options", case, {"method": "algorithm1", "gap": 0.0, "threads": 1}) is not None


@given(seed=SEEDS)
def test_many_cells_against_enumeration(seed: int) -> None:
    kind = ("as drawn", "float32", "extreme units")[seed % 3]
    rows, columns = (600, 7) if CAMPAIGN else (14, 5)
    case = hostile_problem(seed, kind, "as drawn", "none", "none", rows, columns)
    gammas = (1.0, 2.5, 7.0)[seed % 3] * 10.0 ** np.arange(-3.0, 4.0 + seed % 3)
    case = replace(case, folds=make_folds("loo", case.data), gammas=gammas.tolist(), taus=list(range(case.data.p + 1)))
    solved("many cells", case, {"method": METHODS[seed % 3], "gap": (0.0, 1e-4, 0.05)[seed // 3 % 3], "threads": 1})


@given(seed=SEEDS, threads=st.integers(2, 3))
def test_threads(seed: int, threads: int) -> None:
    case, words = any_case(seed)
    record = solved("threads", case, words)
    if record is not None:
        again = solved("threads", case, words | {"threads": threads})
        assert again is not None
        agree(record, again)


@given(seed=SEEDS, order=st.randoms(use_true_random=False))
def test_rows_and_columns_in_another_order(seed: int, order: Any) -> None:
    try:
        case, words = plain_case(seed)
    except BadInput:
        return
    record = solved("another order", case, words)
    if record is None or KINDS[seed % len(KINDS)] == "perfect":  # whose ties are decided by rounding
        return
    data = case.data
    rows, columns = (order.sample(range(size), size) for size in data.X.shape)
    names = [data.names[j] for j in columns]
    mixed = Dataset.from_arrays(data.X[np.ix_(rows, columns)], data.y[rows], names=names)
    again = solved("another order", replace(case, data=mixed, folds=folds_from_labels(case.folds.labels[rows])), words)
    assert again is not None
    agree(record, again)


@given(seed=SEEDS, of_x=st.integers(-40, 40), of_y=st.integers(-40, 40))
def test_other_units(seed: int, of_x: int, of_y: int) -> None:
    """Powers of two change no digit: with `scale` none gamma is of the columns' squares."""
    try:
        case, words = plain_case(seed)
    except BadInput:
        return
    record = solved("other units", case, words)
    if record is None or KINDS[seed % len(KINDS)] == "extreme units":
        return
    x, y = 2.0**of_x, 2.0**of_y
    of_gamma = x * x if case.scale == "none" else 1.0
    data = Dataset.from_arrays(case.data.X * x, case.data.y * y, names=case.data.names)
    other = replace(case, data=data, gammas=[gamma * of_gamma for gamma in case.gammas])
    again = solved("other units", other, words)
    assert again is not None
    agree(record, again, y * y, of_gamma)


@given(seed=SEEDS, readings=st.sampled_from([1, 3, 10, 30, 100, 300, 1000, 3000]))
def test_limits(seed: int, readings: int) -> None:
    """Whatever a limit leaves, its intervals hold the answer of the whole run; carried on, it is that answer."""
    case, words = any_case(seed)
    record = solved("limits", case, words)
    if record is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "run.ck"
        stored = {} if words["method"] == "bounds" else {"checkpoint": store}
        try:
            with limit_after(readings) as seconds:
                part = case.solve(**words, **stored, time_limit=seconds)
        except BadInput:  # this method has no such option
            return
        except OutOfTime:
            COUNTS["limits: no answer yet"] += 1
            return
        assert verify(Record.from_json(part.to_json()), case.data, case.folds).ok, words
        agree(record, part)
        COUNTS["limits: stopped"] += part.status == "limit"
        if store.exists():
            again = case.solve(**words, resume=store)
            agree(record, again)
            assert (again.gamma, again.tau, again.status) == (record.gamma, record.tau, record.status)
            COUNTS["limits: carried on"] += 1
