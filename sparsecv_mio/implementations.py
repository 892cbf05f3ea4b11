"""A registry of functions that are called by name, to avoid circular imports and to load modules only when used.

For example, the modules that read data frames, and those that draw the figures of a record, import the classes of data
sets and records. These classes therefore call them by name. `sparsecv_mio/__init__.py` registers the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_find: Callable[[str], Callable[..., Any]]


def register_implementations(find: Callable[[str], Callable[..., Any]]) -> None:
    """Register the function that returns an implementation by its name."""
    global _find
    _find = find


def find_implementation(name: str) -> Callable[..., Any]:
    """Return the implementation registered under a name."""
    return _find(name)
