"""Where a method says that it has come further; observers listen."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[], None]


class Signals:
    """Two moments of a search that others may want to see.

    `progressed` follows a portion of work; `safe_point` says that no cell is half-written: the state may be stored now.
    """

    def __init__(self) -> None:
        self._on_progress: list[Listener] = []
        self._on_safe_point: list[Listener] = []

    def listen(self, progressed: Listener | None = None, safe_point: Listener | None = None) -> None:
        """Call `progressed` and `safe_point` at these moments from now on."""
        if progressed is not None:
            self._on_progress.append(progressed)
        if safe_point is not None:
            self._on_safe_point.append(safe_point)

    @property
    def storing(self) -> bool:
        """Whether somebody stores the state at safe points."""
        return bool(self._on_safe_point)

    def progressed(self) -> None:
        """Say that a portion of work is done."""
        for listener in self._on_progress:
            listener()

    def safe_point(self) -> None:
        """Say that the state may be stored."""
        for listener in self._on_safe_point:
            listener()
