"""Options of side constraints, and what `fit`, `export` and `compare` share."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sparsecv_mio import grids
from sparsecv_mio.cli import parse
from sparsecv_mio.errors import BadInput
from sparsecv_mio.families import parents_of
from sparsecv_mio.restrictions import NONE, Restrictions

if TYPE_CHECKING:
    from sparsecv_mio.fits.options import SideOptions

T = TypeVar("T")

Together = Annotated[
    list[str] | None, typer.Option("--together", metavar="A,B", help="Chosen all or none; may be repeated.")
]
AtMost = Annotated[
    list[str] | None, typer.Option("--at-most", metavar="K:A,B,...", help="At most K of these; may be repeated.")
]
Box = Annotated[
    list[str] | None,
    typer.Option(
        "--box", metavar="A:LO:HI", help="Bounds of a chosen feature's coefficient, in units of the file; an end may "
        "be empty (A:0: is a sign). May be repeated.",
    ),
]  # fmt: skip


def one_gamma(text: str) -> float:
    """Read a single ridge weight."""
    found = grids.gammas(text)
    if len(found) != 1:
        raise BadInput(f"--gamma: {text!r}: one MIO has one gamma")
    return found[0]


def side_options(
    force_in: str | None,
    force_out: str | None,
    together: Sequence[str] | None,
    at_most: Sequence[str] | None,
    box: Sequence[str] | None,
    hierarchy: Sequence[str] | None = None,
    signs: Restrictions = NONE,
) -> SideOptions:
    """Read the side constraints that the options describe.

    Parameters
    ----------
    force_in, force_out : str, optional
        Names of features, separated by commas.
    together : sequence of str, optional
        Groups of names that are chosen all or none.
    at_most : sequence of str, optional
        `K:A,B,...` each.
    box : sequence of str, optional
        `FEATURE:LO:HI` each.
    hierarchy : sequence of str, optional
        As :func:`~sparsecv_mio.families.parents_of` reads them.
    signs : Restrictions, optional
        Whose signs are taken over.

    Returns
    -------
    SideOptions

    Raises
    ------
    BadInput
        A text cannot be read; the message names its option.
    """
    from sparsecv_mio.fits.options import SideOptions

    return SideOptions(
        force_in=tuple(parse.names(force_in, "--force-in") or ()),
        force_out=tuple(parse.names(force_out, "--force-out") or ()),
        together=tuple(tuple(parse.names(text, "--together") or ()) for text in together or ()),
        at_most=tuple(_at_most(text) for text in at_most or ()),
        box=dict(_box(text) for text in box or ()),
        hierarchy=parents_of(hierarchy or ()),
        nonnegative=signs.nonnegative,
        nonpositive=signs.nonpositive,
    )


def _at_most(text: str) -> tuple[int, tuple[str, ...]]:
    count, colon, features = text.partition(":")
    if not colon:
        raise BadInput(f"--at-most: {text!r} is not K:A,B,...")
    k = grids.whole(count, "--at-most")
    if k < 0:
        raise BadInput(f"--at-most: {k} is out of range, a count is at least 0")
    return k, tuple(parse.names(features, "--at-most") or ())


def _box(text: str) -> tuple[str, tuple[float, float]]:
    # split from the right: a name may hold a colon
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise BadInput(f"--box: {text!r} is not FEATURE:LO:HI")
    low = grids.number(parts[1], "--box") if parts[1].strip() else -math.inf
    high = grids.number(parts[2], "--box") if parts[2].strip() else math.inf
    if low > high:
        raise BadInput(f"--box: {text!r} is reversed")
    return parts[0].strip(), (low, high)


def in_own_thread(work: Callable[[], T]) -> T:
    """Run work in a separate thread and wait: Ctrl-C then reaches the main thread while a solver runs in C."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # handed over to the caller's thread below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
    if errors:
        raise errors[0]
    return results[0]
