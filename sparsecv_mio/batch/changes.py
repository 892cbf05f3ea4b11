"""Changes of a plan from the command line: the same study with other sizes, seeds or limits."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from sparsecv_mio.batch.designs import DESIGN_KEYS, DESIGNS
from sparsecv_mio.errors import BadInput

RANGE = re.compile(r"([0-9]{1,18}):([0-9]{1,18})")
WHOLE = ("seed", "split", "draw", "n", "p", "support")  # of which LO:HI is a range
MOST = 100_000


def changed(plan: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """Return a plan with other values.

    Parameters
    ----------
    plan : mapping
        As in the file.
    changes : sequence of str
        `NAME=VALUES`: a setting of `[vary]`, or what designs are drawn from. Values are as in the file, or `LO:HI` of
        seeds, splits, draws and sizes, both ends included.

    Raises
    ------
    BadInput
        A change has no value, or the plan has no design that it could be of.

    Examples
    --------
    >>> changed({"data": [{"design": "toeplitz"}], "vary": {"folds": "5"}}, ["split=0:2", "draw=[1, 2]", "folds=loo"])
    {'data': [{'design': 'toeplitz', 'draw': [1, 2]}], 'vary': {'folds': 'loo', 'split': [0, 1, 2]}}
    """
    data, vary = [dict(table) for table in plan.get("data", [])], dict(plan.get("vary", {}))
    for change in changes:
        name, mark, text = change.partition("=")
        if not mark or not name or not text:
            raise BadInput(f"--set {change!r}: write NAME=VALUES, split=0:19 for one")
        value = _value(name, text)
        designs = [table for table in data if name in DESIGNS.get(str(table.get("design")), ())]
        if name not in DESIGN_KEYS:
            vary[name] = value
        elif designs:
            for table in designs:
                table[name] = value
        else:
            raise BadInput(f"--set {name}: the plan draws no design that has it")
    return {**plan, "data": data, "vary": vary}


def _value(name: str, text: str) -> Any:
    ends = RANGE.fullmatch(text)
    if name in WHOLE and ends is not None:
        low, high = int(ends[1]), int(ends[2])
        if not low <= high <= low + MOST:
            raise BadInput(f"--set {name}={text}: give LO:HI with LO not above HI")
        return list(range(low, high + 1))
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
