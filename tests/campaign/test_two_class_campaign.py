"""Logistic searches of hostile problems against `verify`, which proves every pair afresh; started by hand."""

from __future__ import annotations

import os

from two_class_cases import two_class_case

from sparsecv_mio.certificate.verify import verify
from sparsecv_mio.errors import BadInput


def test_no_record_is_refused() -> None:
    begin, count = int(os.environ.get("FUZZ_SEED", "0")), int(os.environ.get("FUZZ_EXAMPLES", "6"))
    refused = {}
    for seed in range(begin, begin + count):
        try:
            case = two_class_case(seed)
            record = case.solved(time_limit=20.0)
        except BadInput:
            continue
        found = verify(record, case.data)
        if not found.ok:
            refused[seed] = found.failures[0]
    assert not refused
