"""Figures and reports of a record as its methods.

A record is data and knows nobody who draws it: `sparsecv_mio/__init__.py`, which knows both, says who does (`draw_by`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_drawer: Callable[[str], Callable[..., Any]]


def draw_by(drawer: Callable[[str], Callable[..., Any]]) -> None:
    """Say who draws records and writes their reports: `drawer` returns the function of a name, when called for."""
    global _drawer
    _drawer = drawer


class DrawnModel:
    """A record of which there are figures."""

    def plot(self, data: Any = None) -> Figure:
        """Draw everything there is to see, as `sparsecv plot` does.

        Parameters
        ----------
        data : Dataset, optional
            The data of the record, for the coefficients by tau in comparable units.

        Returns
        -------
        matplotlib Figure
            Shown by a notebook, written by its `savefig`.
        """
        return _drawer("figure_of")(self, data)

    def write_report(self, path: str | os.PathLike[str], data: Any = None) -> None:
        """Write a report, as `sparsecv report` does: answer, proofs, figures, tables, how to verify it.

        Parameters
        ----------
        path : path
            Its ending says which: one page of HTML (`.html`), Markdown (`.md`) or tables in LaTeX (`.tex`).
        data : Dataset, optional
            The data of the record, for the coefficients by tau.

        Raises
        ------
        BadInput
            The file cannot be written, or its ending is another one.
        """
        _drawer("write_report")(self, path, data)

    def plot_coefficients(self, ax: Axes | None = None, data: Any = None, gamma: float | None = None) -> Axes:
        """Draw the coefficients: of every tau of a path, or with the data; else of the model.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Those of a new figure by default; so in the other drawings.
        data : Dataset, optional
            The data of the record: coefficients are then standardised, and those of a cross-validation are drawn for
            every tau, by best subsets on all rows at the gamma of the model (within ten seconds).
        gamma : float, optional
            Of a path, the one to draw; that in the middle by default.

        Returns
        -------
        matplotlib Axes
        """
        return _drawer("plot_coefficients")(self, ax, data, gamma)


class DrawnSearch(DrawnModel):
    """A record of a cross-validation."""

    def plot_cv_error(self, ax: Axes | None = None) -> Axes:
        """Draw the CV error by tau with certified intervals, one standard error to each side, and the choice."""
        return _drawer("plot_cv_error")(self, ax)

    def plot_grid(self, ax: Axes | None = None) -> Axes:
        """Draw the CV error of all pairs (tau, gamma), hatched where a pair is excluded by proof."""
        return _drawer("plot_grid")(self, ax)

    def plot_features(self, ax: Axes | None = None) -> Axes:
        """Draw how many folds choose each feature at the reported pair."""
        return _drawer("plot_features")(self, ax)
