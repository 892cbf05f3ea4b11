"""What the backends that wrap somebody's solver share: whether it is here, a safe callback, gap, log, the one error."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from sparsecv_mio.errors import BackendFailed
from sparsecv_mio.formulation.backends.base import LOG_TAIL, Availability
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.formulation.task import Task

EVERY_KIND = frozenset({"force", "together", "at_most", "box"})  # of side constraints


@cache
def probe(package: str, extra: str, describe: Callable[[Any], Availability]) -> Availability:
    """Import a package and let `describe` say what it is; never raises, a damaged installation is an answer too."""
    try:
        module = import_module(package)
    except ImportError:
        return Availability(False, f"{package} is not installed", hint=f"pip install 'sparsecv-mio[{extra}]'")
    try:
        return describe(module)
    except Exception as error:
        return Availability(False, f"{package} does not start ({error})", str(getattr(module, "__version__", "")))


class Poll:
    """Asks for the cancel event from inside a solver's callback.

    An exception must not pass through a solver's C code, where it is printed and lost or corrupts the solve: it is
    kept, the solver is asked to stop, and `raise_stored` raises it once the solver has returned.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.error: BaseException | None = None

    def __call__(self) -> bool:
        """Whether to stop."""
        if self.error is None:
            try:
                return self.limits.cancelled
            except BaseException as error:
                self.error = error
        return True

    def raise_stored(self) -> None:
        """Raise what a callback could not."""
        if self.error is not None:
            raise self.error


def gap_target(task: Task, limits: Limits) -> float:
    """Return the absolute gap, in units of phi, that closes the relative gap on the full objective, with some room.

    Below 1e-9 no floating-point branch-and-bound can tell; the allowance covers the difference.
    """
    least = max(task.scaled.objective(task.floor), 0.0)
    return max(0.5 * limits.gap * least / task.scaled.unit**2, 1e-9)


def read_tail(path: str | None) -> str:
    """Return the end of a log file, empty when there is none."""
    if path is None:
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()[-LOG_TAIL:]
    except OSError:
        return ""


def failed(name: str, raw_status: str, log_tail: str = "") -> BackendFailed:
    """Return the one error for a solver that stopped in a state it should not reach."""
    return BackendFailed(f"backend {name} failed: {raw_status}", raw_status, log_tail)
