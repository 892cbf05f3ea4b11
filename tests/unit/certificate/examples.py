"""A record of every part, for the tests of how records are written and read."""

from __future__ import annotations

import dataclasses
import math

from sparsecv_mio.certificate.parts import ChosenFolds, DataInfo, FoldInfo, GridRequest, SearchRequest, Work, versions
from sparsecv_mio.certificate.records import SCHEMA, Least, OneSe, Record, Refit, Region, TableRow

DATA = DataInfo(3, 2, "y", "sha256:00", "length", "fold", ("a b", 'quote"d'))
WORK = Work(4, 17, 0.25, "per-fold")
ONE_SE = OneSe(0.5)
REQUEST = GridRequest((0.1, 1.0), (1, 2), 1e-4, one_se=True, time_limit=None, threads=2)
SEARCH_REQUEST = SearchRequest(
    (0.1, 1.0), (1, 2), 1e-4, one_se=True, time_limit=None, threads=2, method="auto", method_used="rounds",
    backend="native", refine=False, oracles=("glru", "treecv"),
)  # fmt: skip


def example(**changes: object) -> Record:
    record = Record(
        schema=SCHEMA,
        status="proved",
        gamma=0.1,
        tau=1,
        cv_error=2.0,
        lower=1.9999,
        upper=2.0001,
        gap=1e-4,
        tie_width=0.0,
        allowance=1e-12,
        r_squared=0.3,
        support=("a b",),
        coefficients={"a b": 0.1 + 0.2},
        intercept=-1e-150,
        one_se=ONE_SE,
        refit=Refit(0.1, 1, 3.0, 3.0, 3.0, True),
        table=(
            TableRow(0.1, 1, 2.0, 1.9999, 2.0001, 3, 3, status="decided", standard_error=0.5),
            TableRow(1.0, 1, math.inf, 0.0, math.inf, 0, 3, status="open"),
        ),
        chosen_folds=ChosenFolds.of([("a b",), ('quote"d',), ("a b",)], [1.0, 2.0, 3.0]),
        work=WORK,
        data=DATA,
        folds=FoldInfo("loo", None, 3, "sha256:11"),
        request=SEARCH_REQUEST,
        warnings=("column é is constant",),
        versions=versions(),
        region=Region(1, None, 0.1, 1, 2.0, 1.9999, 2.0001, 0.0, 1e-12),
        least=Least(1.0, 1, 1.5, 1.5, 1.5, 0.0, 0.0, 1e-12),
        least_folds=ChosenFolds.of([()] * 3, [1.0, 1.5, 2.0]),
    )
    return dataclasses.replace(record, **changes)  # type: ignore[arg-type]
