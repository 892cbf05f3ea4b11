"""What the backends of vendors' solvers share: availability, a safe callback, the gap, the log, the error."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from sparsecv_mio.errors import BackendFailed
from sparsecv_mio.formulation.backends.base import Availability
from sparsecv_mio.formulation.outcome import Limits
from sparsecv_mio.formulation.task import Task

LOG_TAIL = 2000  # characters
EVERY_KIND = frozenset({"force", "together", "at_most", "parents", "sign", "box"})  # of side constraints


@cache
def probe(package: str, describe: Callable[[Any], Availability]) -> Availability:
    """Import a solver's package and find out whether it can be used; a damaged installation raises no error.

    Parameters
    ----------
    package : str
        To import; it is installed by the same name, and Pyomo with it.
    describe : callable
        Takes the module and returns its `Availability`.

    Returns
    -------
    Availability
    """
    try:
        module = import_module(package)
    except ImportError:
        return Availability(False, f"{package} is not installed", hint=f"pip install {package} pyomo")
    try:
        return describe(module)
    except Exception as error:
        return Availability(False, f"{package} does not start ({error})", str(getattr(module, "__version__", "")))


class Poll:
    """Checks the cancel event from inside a solver's callback.

    An exception must not pass through a solver's C code, where it is printed and lost or corrupts the solve: it is
    stored, the solver is told to stop, and `raise_stored` raises it once the solver has returned.
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
        """Raise the exception that a callback stored, if any."""
        if self.error is not None:
            raise self.error


def gap_target(task: Task, limits: Limits) -> float:
    """Return an absolute gap, in units of phi, that is half the relative gap on the full objective.

    At least 1e-9, below which a floating-point branch-and-bound is not reliable; the allowance covers the difference.
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
    """Return the error for a solver that stopped in a state it should not reach.

    Parameters
    ----------
    name : str
        Of the backend.
    raw_status : str
        The solver's own name for how it ended.
    log_tail : str
        The end of its log.

    Returns
    -------
    BackendFailed
    """
    return BackendFailed(f"backend {name} failed: {raw_status}", raw_status, log_tail)
