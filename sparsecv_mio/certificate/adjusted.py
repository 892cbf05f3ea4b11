"""Conversion of records between two conventions for adjustment columns.

A search treats an adjustment column as a forced column without a penalty, which counts towards tau. In a stored record
an adjustment column is in no support and does not count towards tau. `uncounted` converts the result of a search to the
convention of records, and `counted` converts it back for further computation. Coefficients include the adjustment
columns in both conventions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sparsecv_mio.certificate.parts import ChosenFolds
from sparsecv_mio.errors import CorruptStore
from sparsecv_mio.model_space import NONE, Restrictions, taus, text_of_taus

Part = TypeVar("Part")
SIZES, SUPPORTS = ("tau", "up_to_tau", "taus"), ("support", "supports", "always")


def adjusted_for(record: Any) -> tuple[str, ...]:
    """Return the columns that a record adjusts for.

    Parameters
    ----------
    record : record of any kind
    """
    holder = getattr(record, "request", None) or getattr(record, "side", None)
    restrictions: Restrictions = getattr(holder, "restrictions", None) or NONE
    return restrictions.adjust


def counted(record: Part) -> Part:
    """Return a record with what it adjusts for in every support, and counted in every tau.

    Parameters
    ----------
    record : record of any kind

    Raises
    ------
    CorruptStore
        Where a support has such a column already.
    """
    columns = adjusted_for(record)
    names: Sequence[str] = record.data.names  # type: ignore[attr-defined]
    place = {name: j for j, name in enumerate(names)}

    def moved(support: tuple[str, ...]) -> tuple[str, ...]:
        for name in columns:
            if name in support:
                raise CorruptStore(f"record: a support names {name!r}, which is adjusted for and in none")
        return tuple(sorted({*support, *columns}, key=lambda name: place.get(name, len(place))))

    return _moved(record, moved, len(columns)) if columns else record


def uncounted(record: Part) -> Part:
    """Return a record with what it adjusts for in no support, and not counted in tau.

    Parameters
    ----------
    record : record of any kind
    """
    columns = adjusted_for(record)

    def moved(support: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in support if name not in columns)

    return _moved(record, moved, -len(columns)) if columns else record


def _moved(part: Any, moved: Callable[[tuple[str, ...]], tuple[str, ...]], by: int) -> Any:
    """Return a part of a record with other supports, and sizes that are larger by so many."""
    if isinstance(part, ChosenFolds):
        return ChosenFolds(tuple(map(moved, part.supports)), part.which, part.error, part.decided)
    if isinstance(part, tuple):
        return tuple(_moved(item, moved, by) for item in part)
    if not is_dataclass(part) or isinstance(part, Restrictions | type):
        return part
    changes = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name in SIZES:
            changes[field.name] = _resized(value, by)
        elif field.name in SUPPORTS and isinstance(value, tuple):
            several = field.name == "supports"
            changes[field.name] = tuple(map(moved, value)) if several else moved(value)
        else:
            changes[field.name] = _moved(value, moved, by)
    return replace(part, **{name: value for name, value in changes.items() if value is not getattr(part, name)})


def _resized(size: Any, by: int) -> Any:
    """Return a size, several, or a text of these, larger by so many."""
    if size is None:
        return None
    if isinstance(size, str):
        return text_of_taus(tau + by for tau in taus(size, 10**6))
    return tuple(tau + by for tau in size) if isinstance(size, tuple) else size + by
