"""Implementations that modules of data and records call but do not import.

The modules that read data sets from frames, and that draw the figures of a record, import the classes of data sets and
records. `sparsecv_mio/__init__.py` registers these implementations by name.
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
