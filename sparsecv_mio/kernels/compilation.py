"""Word of kernels that are being compiled: the first use of a kernel takes seconds, later ones load it from a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import event


class _Listener(event.Listener):
    def __init__(self, begun: Callable[[], None], during: Callable[[bool], None] | None) -> None:
        self.begun, self.during, self.depth = begun, during, 0  # one thread compiles at a time, one kernel in another

    def on_start(self, event: event.Event) -> None:
        """Tell that a kernel is not in the cache."""
        self.depth += 1
        if self.depth == 1 and self.during is not None:
            self.during(True)
        self.begun()

    def on_end(self, event: event.Event) -> None:
        """Tell that it is compiled."""
        self.depth -= 1
        if self.depth == 0 and self.during is not None:
            self.during(False)


@contextmanager
def watched(begun: Callable[[], None], during: Callable[[bool], None] | None = None) -> Iterator[None]:
    """Call `begun`, from the thread that compiles, whenever a kernel is compiled in here.

    Parameters
    ----------
    begun : callable
    during : callable, optional
        Called with True where compiling begins and with False where it ends.
    """
    with event.install_listener("numba:compile", _Listener(begun, during)):
        yield
