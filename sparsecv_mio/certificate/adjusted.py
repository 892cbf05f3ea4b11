"""Adjustment columns of a record: they are in every model, but in no support of the record, and tau excludes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from sparsecv_mio.certificate.parts import ChosenFolds
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.model_space import NONE, Restrictions

SUPPORTS = ("support", "always")  # fields that hold the features of one support


def restrictions_of(record: Any) -> Restrictions:
    """Return the restrictions of a record of any kind."""
    holder = getattr(record, "request", None) or getattr(record, "side", None)
    restrictions: Restrictions | None = getattr(holder, "restrictions", None)
    return restrictions or NONE


def adjustment_columns(record: Any) -> tuple[str, ...]:
    """Return the adjustment columns of a record of any kind."""
    return restrictions_of(record).adjust


def check_supports(record: Any) -> None:
    """Raise `CorruptStore` if a support of a record names an adjusted column.

    Parameters
    ----------
    record : record of any kind
        Record.
    """
    adjusted = adjustment_columns(record)
    for support in _iterate_supports(record) if adjusted else ():
        for name in adjusted:
            if name in support:
                raise CorruptStore(f"record: a support contains {name!r}, but adjusted columns are never in a support")


def _iterate_supports(part: Any) -> Iterator[tuple[str, ...]]:
    """Yield the supports of a part of a record."""
    if isinstance(part, ChosenFolds):
        yield from part.supports
    elif isinstance(part, tuple):
        for item in part:
            yield from _iterate_supports(item)
    elif is_dataclass(part) and not isinstance(part, Restrictions):
        for field in fields(part):
            value = getattr(part, field.name)
            if field.name in SUPPORTS:
                yield value
            elif field.name == "supports":
                yield from value
            else:
                yield from _iterate_supports(value)
