"""A record that is right, altered in one thing that matters: `verify` rejects it, and never breaks down."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from drawn import COUNTS
from forged import Forgery, forgery

from sparsecv_mio.certificate.reading import AnyRecord
from sparsecv_mio.certificate.record import FitRecord, PathRecord, Record
from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.errors import SparseCVError
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.search.api import cross_validate

EACH = int(os.environ.get("FUZZ_FORGERIES", "15"))  # of every record
FIRST = int(os.environ.get("FUZZ_SEED", "0"))
GAMMAS = [0.01, 0.3, 5.0]

KINDS: dict[str, Callable[[Dataset, int], tuple[AnyRecord, tuple[Any, ...]]]] = {}


def kind(make: Callable[[Dataset, int], tuple[AnyRecord, tuple[Any, ...]]]) -> Callable[..., Any]:
    KINDS[make.__name__] = make
    return make


@cache
def data(seed: int) -> Dataset:
    rng = np.random.default_rng([3, seed])
    X = rng.normal(size=(int(rng.integers(12, 22)), int(rng.integers(3, 6))))
    return Dataset.from_arrays(X, X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X)))


def decided(sample: Dataset, seed: int, **more: Any) -> tuple[Record, tuple[Any, ...]]:
    """A record all of whose pairs are decided, so that all of its numbers are claims."""
    plan = make_folds(("3", "loo", "2x3", "forward:3")[seed % 4], sample, seed)
    words = {"gammas": GAMMAS, "taus": range(1, sample.p + 1), "method": "grid", "gap": 0.0, "threads": 1, **more}
    record = cross_validate(sample, plan, **words)
    assert all(row.status == "decided" for row in record.table)
    return record, (sample, plan)


@kind
def plain(sample: Dataset, seed: int) -> tuple[AnyRecord, tuple[Any, ...]]:
    return decided(sample, seed)


@kind
def one_se(sample: Dataset, seed: int) -> tuple[AnyRecord, tuple[Any, ...]]:
    return decided(sample, seed, one_se=True)


@kind
def restricted(sample: Dataset, seed: int) -> tuple[AnyRecord, tuple[Any, ...]]:
    return decided(sample, seed, force_in=[sample.names[0]], at_most=[f"1:{sample.names[1]},{sample.names[2]}"],
                   taus=range(1, 3))  # fmt: skip


@kind
def path(sample: Dataset, seed: int) -> tuple[AnyRecord, tuple[Any, ...]]:
    return best_subsets(sample, gammas=GAMMAS, taus=range(1, 4), threads=1), (sample,)


@kind
def single(sample: Dataset, seed: int) -> tuple[AnyRecord, tuple[Any, ...]]:
    return fit_one(sample, tau=2, gamma=0.3), (sample,)


def immaterial(record: AnyRecord, made: Forgery) -> bool:
    """Whether what was altered says less than before, or the same in another order, or what was asked."""
    field, how = made.field, made.how
    if field.startswith("request.restrictions."):
        return True  # within fewer restrictions the answer may be the same, and then the record is right
    sets = ("support", "request.taus", "request.gammas", "path", "table")
    if "exchanged" in how and (field.endswith("support") or field in sets):
        return True  # in any order
    if how.startswith(("proved -> limit", "True -> False")) and field.endswith(("status", "proved")):
        return True  # claims less
    if field in ("region.up_to_tau", "region.from_gamma"):
        return True  # of a smaller region the same holds
    if isinstance(record, FitRecord | PathRecord):
        # on all rows `fold` and `global` are the same model; an ulp of gamma moves no digit of an objective
        return field in ("gamma", "data.intercept", "requested_gap", "allowance", "gap", "request.one_se") or (
            field == "request.taus" or field == "request.gammas" and "twice" in how or field.startswith("request.gap")
        )
    # gaps, allowances and ties of 1e-13 by a millionth of themselves; the gap that was asked for
    return field in ("gap", "allowance", "tie_width", "region.allowance", "request.gap", "request.one_se")


def accepted(record: AnyRecord, context: tuple[Any, ...], rng: np.random.Generator, count: int) -> list[str]:
    """The alterations that matter and that `verify` does not reject."""
    kind_of, whole, found = type(record), json.loads(record.to_json()), []
    assert verify(kind_of.from_json(json.dumps(whole)), *context).ok
    for _ in range(count):
        made = forgery(whole, rng)
        if made is None or immaterial(record, made):
            continue
        COUNTS["forged records: alterations that matter"] += 1
        try:
            right = verify(kind_of.from_json(made.text), *context).ok
        except SparseCVError as error:  # it is no record any more
            assert "\n" not in str(error)
            COUNTS["forged records: no record any more"] += 1
            continue
        if right:
            found.append(f"{kind_of.__name__} {made.field}: {made.how}")
            COUNTS[f"forged records: ACCEPTED {made.field}"] += 1
    return found


@pytest.mark.parametrize("name", KINDS)
def test_no_forgery_is_accepted(name: str) -> None:
    found: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + (2 if EACH < 100 else 20)):
        record, context = KINDS[name](data(seed), seed)
        found += Counter(accepted(record, context, np.random.default_rng([7, seed]), EACH))
    assert not found, found.most_common(20)
