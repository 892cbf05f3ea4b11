"""Records with other fields, given by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any


def set_fields(part: Any, fields: Mapping[str, Any]) -> Any:
    """The part with other fields: `{"table.3.lower": 0.0}`; a callable gets the value that was there."""
    for path, value in fields.items():
        part = _set(part, path.split("."), value)
    return part


def _set(part: Any, keys: list[str], value: Any) -> Any:
    if not keys:
        return value(part) if callable(value) else value
    key, *rest = keys
    if isinstance(part, tuple):
        items = list(part)
        items[int(key)] = _set(items[int(key)], rest, value)
        return tuple(items)
    if isinstance(part, Mapping):
        return {**part, key: _set(part[key], rest, value)}
    return replace(part, **{key: _set(getattr(part, key), rest, value)})
