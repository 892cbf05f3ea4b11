"""A registry of functions that the classes of data sets and records call by name, to avoid circular imports.

The modules that read data frames, and the modules that draw the figures of a record, import these classes. The classes
therefore cannot import these modules. `sparsecv_mio/__init__.py` registers the functions by name.
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
