"""Word of kernels that are being compiled: the first use of a kernel takes seconds, later ones load it from a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import event


class _Listener(event.Listener):
    def __init__(self, begun: Callable[[], None]) -> None:
        self.begun = begun

    def on_start(self, event: event.Event) -> None:
        """Tell that a kernel is not in the cache."""
        self.begun()

    def on_end(self, event: event.Event) -> None:
        """Nothing: it is compiled."""


@contextmanager
def watched(begun: Callable[[], None]) -> Iterator[None]:
    """Call `begun`, from the thread that compiles, whenever a kernel is compiled in here."""
    with event.install_listener("numba:compile", _Listener(begun)):
        yield
