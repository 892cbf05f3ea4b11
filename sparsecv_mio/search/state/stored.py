"""Arrays that come from a file, checked before a run trusts their types, shapes and numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from sparsecv_mio.errors import CorruptStore

Arrays = Mapping[str, NDArray[Any]]


def check_like(state: Arrays, like: Arrays, free: Sequence[str] = ()) -> None:
    """Raise `CorruptStore` unless the arrays of `like` are all there, of its types and shapes.

    Those in `free` may be of any length, with the dimensions of `like`.

    Parameters
    ----------
    state, like : mappings of str to array
    free : sequence of str
    """
    for name, model in like.items():
        if name not in state:
            raise CorruptStore(f"its array {name} is missing")
        found = state[name]
        if found.dtype.kind != model.dtype.kind or found.dtype.itemsize > 8 and found.dtype.kind != "U":
            raise CorruptStore(f"its array {name} holds {found.dtype}, not {model.dtype}")
        if found.ndim != model.ndim or (name not in free and found.shape != model.shape):
            raise CorruptStore(f"its array {name} has shape {found.shape}, not {model.shape}")


def within(state: Arrays, name: str, low: float, high: float) -> None:
    """Raise `CorruptStore` unless every number of an array is in [low, high]; NaN never is.

    Parameters
    ----------
    state : mapping of str to array
    name : str
    low, high : float
    """
    if not bool(((state[name] >= low) & (state[name] <= high)).all()):
        raise CorruptStore(f"its array {name} holds numbers outside of {low:g} .. {high:g}")


def counts_of(text: NDArray[Any]) -> dict[str, int]:
    """Return counts by name, stored as JSON; raises `CorruptStore` for anything else."""
    found = parsed(text)
    if not isinstance(found, dict) or any(type(count) is not int for count in found.values()):
        raise CorruptStore("it holds no counts where counts belong")
    return found


def parsed(text: NDArray[Any]) -> Any:
    """JSON that an array of text holds; raises `CorruptStore` where it holds none."""
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        raise CorruptStore("it holds no JSON where JSON belongs") from None


def prefixed(name: str, state: Arrays) -> dict[str, NDArray[Any]]:
    """Put a state below a name."""
    return {f"{name}.{key}": value for key, value in state.items()}


def below(name: str, state: Arrays) -> dict[str, NDArray[Any]]:
    """Return what is below a name, the inverse of `prefixed`; empty where nothing is."""
    return {key[len(name) + 1 :]: value for key, value in state.items() if key.startswith(f"{name}.")}
