"""Which calls compile kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import event


class _Listener(event.Listener):
    def __init__(self, begun: Callable[[], object]) -> None:
        self.begun = begun

    def on_start(self, event: event.Event) -> None:
        self.begun()

    def on_end(self, event: event.Event) -> None:
        pass


@contextmanager
def watched(begun: Callable[[], object]) -> Iterator[None]:
    """Call `begun` whenever a kernel is compiled in here."""
    with event.install_listener("numba:compile", _Listener(begun)):
        yield
