"""Methods of a record that draw figures, write reports and compute prediction intervals.

The classes of records do not import the modules that implement these methods. `sparsecv_mio/__init__.py` imports both
and registers the implementations with `draw_by`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sparsecv_mio.arrays import FloatArray

_drawer: Callable[[str], Callable[..., Any]]


def draw_by(drawer: Callable[[str], Callable[..., Any]]) -> None:
    """Say who draws records, reports on them and fits their folds again: `drawer` returns the function of a name."""
    global _drawer
    _drawer = drawer


def made_by(name: str) -> Callable[..., Any]:
    """Return the function of a name from the rooms that make something of records."""
    return _drawer(name)


def _read(record: Any, data: Any) -> Any:
    """Return the data of a record, a file or a table read as the record states; None where none are given."""
    return None if data is None else _drawer("data_of")(record, data)


class DrawnModel:
    """A record of which there are figures."""

    def plot(self, data: Any = None) -> Figure:
        """Draw everything there is to see, as `sparsecv plot` does.

        Parameters
        ----------
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            The data of the record, as `solve` took them, for the coefficients by tau in comparable units.

        Returns
        -------
        matplotlib Figure
            Shown by a notebook, written by its `savefig`.
        """
        return _drawer("figure_of")(self, _read(self, data))

    def write_report(self, path: str | os.PathLike[str], data: Any = None) -> None:
        """Write a report, as `sparsecv report` does: answer, proofs, figures, tables, how to verify it.

        Parameters
        ----------
        path : path
            Its ending says which: one page of HTML (`.html`), Markdown (`.md`) or tables in LaTeX (`.tex`).
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            The data of the record, as `solve` took them, for the coefficients by tau.

        Raises
        ------
        BadInput
            The file cannot be written, or its ending is another one.
        """
        _drawer("write_report")(self, path, _read(self, data))

    def plot_coefficients(self, ax: Axes | None = None, data: Any = None, gamma: float | None = None) -> Axes:
        """Draw the coefficients: of every tau of a path, or with the data; else of the model.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Those of a new figure by default; so in the other drawings.
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            The data of the record, as `solve` took them: coefficients are then standardised, and those of a
            cross-validation are drawn for every tau, by best subsets on all rows at the gamma of the model
            (within ten seconds).
        gamma : float, optional
            Of a path, the one to draw; that in the middle by default.

        Returns
        -------
        matplotlib Axes
        """
        return _drawer("plot_coefficients")(self, ax, _read(self, data), gamma)


class DrawnSearch(DrawnModel):
    """A record of a cross-validation."""

    def plot_cv_error(self, ax: Axes | None = None) -> Axes:
        """Draw the CV error by tau with certified intervals, one standard error to each side, and the choice."""
        return _drawer("plot_cv_error")(self, ax)

    def plot_grid(self, ax: Axes | None = None) -> Axes:
        """Draw the CV error of all pairs (tau, gamma), hatched where a pair is excluded by proof."""
        return _drawer("plot_grid")(self, ax)

    def plot_bounds(self, ax: Axes | None = None) -> Axes:
        """Draw how far the certified lower bounds of all pairs are above or below the least CV error proved."""
        return _drawer("plot_bounds")(self, ax)

    def plot_features(self, ax: Axes | None = None) -> Axes:
        """Draw how many folds choose each feature at the reported pair."""
        return _drawer("plot_features")(self, ax)

    def plot_roc(self, data: Any, ax: Axes | None = None) -> Axes:
        """Draw the ROC curve of held-out rows, of a record of two classes, whose data are needed."""
        return _drawer("plot_roc")(self, _read(self, data), ax)

    def plot_calibration(self, data: Any, ax: Axes | None = None) -> Axes:
        """Draw how probabilities of held-out rows come true, of a record of two classes, whose data are needed."""
        return _drawer("plot_calibration")(self, _read(self, data), ax)

    def predict_interval(self, X: Any, level: float = 0.9, data: Any = None, folds: Any = None) -> FloatArray:
        """Return prediction intervals of new rows: CV+ (Barber and others 2021), by the models of the folds.

        These are fitted again to the data of the record. Of new rows that are exchangeable with them at least `2 level
        - 1` lie in their intervals, less `sqrt(2 / n)` for K folds, if tau and gamma had not been chosen by the same
        folds; mostly it is about `level` (docs/theory/intervals.md).

        Parameters
        ----------
        X : path, pandas.DataFrame, table with `__arrow_c_stream__`, Dataset or (m, p) array_like
            New rows, as for `predict`.
        level : float
            Share of new rows that the intervals aim at.
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
            The data of the record, as `solve` took them; needed.
        folds : FoldPlan, splitter, labels or pairs, optional
            Those of the record, where it does not say them; by default they are dealt as it says.

        Returns
        -------
        (m, 2) array
            Lower and upper ends, in units of the target.

        Raises
        ------
        BadInput
            For weights, an averaged model, folds that do not hold out every row once, too few rows for the level, and
            data that are not those of the record.

        Examples
        --------
        >>> import sparsecv_mio as sc
        >>> data = sc.read_dataset("instances/prostate.csv", target="lpsa")
        >>> record = sc.solve(data, gammas=[0.01, 0.1, 1.0])
        >>> record.predict_interval(data.X[:2], data=data).round(2).tolist()
        [[-0.48, 2.26], [-0.63, 2.18]]
        """
        made: FloatArray = _drawer("predict_interval")(self, X, level, data, folds)
        return made
