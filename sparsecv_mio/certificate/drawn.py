"""Figures of a record as its methods.

A record knows its drawings by name only: `report`, which draws them, and matplotlib are imported when one is asked for.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _draw(name: str, *arguments: Any) -> Any:
    return getattr(import_module("sparsecv_mio.report.record_plots"), name)(*arguments)


def _report(name: str, *arguments: Any) -> Any:
    return getattr(import_module("sparsecv_mio.report.record_report"), name)(*arguments)


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
        return _draw("figure_of", self, data)

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
        _report("write_report", self, path, data)

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
        return _draw("plot_coefficients", self, ax, data, gamma)


class DrawnSearch(DrawnModel):
    """A record of a cross-validation."""

    def plot_cv_error(self, ax: Axes | None = None) -> Axes:
        """Draw the CV error by tau with certified intervals, one standard error to each side, and the choice."""
        return _draw("plot_cv_error", self, ax)

    def plot_grid(self, ax: Axes | None = None) -> Axes:
        """Draw the CV error of all pairs (tau, gamma), hatched where a pair is excluded by proof."""
        return _draw("plot_grid", self, ax)

    def plot_features(self, ax: Axes | None = None) -> Axes:
        """Draw how many folds choose each feature at the reported pair."""
        return _draw("plot_features", self, ax)
