"""Where a method says that it has come further; observers listen."""

from __future__ import annotations

from collections.abc import Callable

Listener = Callable[[], None]


class Signals:
    """Moments of a search that others may want to see.

    `doing` says in words what comes next; `progressed` follows a portion of work; `safe_point` says that no cell is
    half-written: the state may be stored now.

    Attributes
    ----------
    phase : str
        What the search is doing, as in `trees: tau 3, fold 4 of 10`; empty before it said.
    """

    def __init__(self) -> None:
        self.phase = ""
        self._on_phase: list[Callable[[str], None]] = []
        self._on_progress: list[Listener] = []
        self._on_safe_point: list[Listener] = []

    def listen(
        self,
        progressed: Listener | None = None,
        safe_point: Listener | None = None,
        doing: Callable[[str], None] | None = None,
    ) -> None:
        """Call listeners at these moments from now on.

        Parameters
        ----------
        progressed, safe_point : callable, optional
        doing : callable, optional
            Called with what is being done, in words.
        """
        if doing is not None:
            self._on_phase.append(doing)
        if progressed is not None:
            self._on_progress.append(progressed)
        if safe_point is not None:
            self._on_safe_point.append(safe_point)

    @property
    def storing(self) -> bool:
        """Whether somebody stores the state at safe points."""
        return bool(self._on_safe_point)

    def doing(self, phase: str, done: int = 0, of: int = 0) -> None:
        """Say what is being done now, and how much of it is done where that is counted.

        Parameters
        ----------
        phase : str
            As `trees: tau 3`.
        done, of : int, optional
            Counted from the first; `of` 0 leaves both out.
        """
        self.phase = f"{phase} {done:,} of {of:,}" if of else phase
        for listener in self._on_phase:
            listener(self.phase)

    def progressed(self) -> None:
        """Say that a portion of work is done."""
        for listener in self._on_progress:
            listener()

    def safe_point(self) -> None:
        """Say that the state may be stored."""
        for listener in self._on_safe_point:
            listener()
