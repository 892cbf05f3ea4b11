"""Every number of a record, and the record with one of them altered."""

from __future__ import annotations

import json
import marshal
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]


def numbers(value: Any, path: Place = ()) -> Iterator[tuple[Place, float]]:
    """Yield the numbers of a decoded JSON text with their places; true and false are none."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(inner, (*path, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def altered(content: Any, path: Place, value: Any) -> str:
    """Return the JSON text with another value at a place."""
    content = marshal.loads(marshal.dumps(content))  # a tenth of the time of deepcopy
    part = content
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return json.dumps(content)


def multiplied(value: float, factor: float) -> float:
    """Return a number times a factor, of its own type; a whole one that would stay the same is one more."""
    return type(value)(value * factor + (factor > 1.0 and isinstance(value, int)))
