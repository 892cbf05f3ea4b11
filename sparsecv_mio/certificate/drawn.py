"""Methods of a record that draw figures, write reports and compute prediction intervals.

The classes of records do not import the modules that implement these methods (`sparsecv_mio.implementations`).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.errors import BadInput
from sparsecv_mio.implementations import find_implementation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sparsecv_mio.arrays import FloatArray

FIGURE_SUFFIXES = (".png", ".pdf", ".svg")  # formats of figure files


def _read(record: Any, data: Any) -> Any:
    """Return the data of a record, read from a file or table as the record states; None without data."""
    return None if data is None else find_implementation("data_of")(record, data)


class DrawnModel:
    """Methods that draw figures of a record."""

    def plot(self, data: Any = None) -> Figure:
        """Return a figure with all panels, as `sparsecv plot` draws it.

        Parameters
        ----------
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            Data of the record, as passed to `solve`, for coefficients by tau in comparable units.

        Returns
        -------
        matplotlib Figure
            The figure; notebooks display it, and `savefig` writes it.
        """
        if isinstance(data, str | os.PathLike) and Path(data).suffix.lower() in FIGURE_SUFFIXES:
            path = os.fspath(data)
            raise BadInput(f"data: {path!r} names a figure, not a data file; write it with plot().savefig({path!r})")
        return find_implementation("figure_of")(self, _read(self, data))

    def write_report(self, path: str | os.PathLike[str], data: Any = None, style: str = "report") -> None:
        """Write a report, as `sparsecv report` does: answer, certificates, figures, tables, verification.

        Parameters
        ----------
        path : path
            File name whose suffix gives the format: an HTML page (`.html`), Markdown (`.md`) or LaTeX tables (`.tex`);
            with style `publication` also `.csv`, but not `.html`.
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            Data of the record, as passed to `solve`, for coefficients by tau, or for effects of one standard deviation.
        style : {"report", "publication"}
            The whole report, or the table of the model for a paper, with texts on methods and results.

        Raises
        ------
        BadInput
            If the file cannot be written, or has another suffix.
        """
        find_implementation("write_report")(self, path, _read(self, data), style)

    def plot_coefficients(self, ax: Axes | None = None, data: Any = None, gamma: float | None = None) -> Axes:
        """Draw the coefficients of every tau (for a path, or with data), or of the model.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; those of a new figure by default, as in the other methods.
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset, optional
            Data of the record, as passed to `solve`. Coefficients are then standardised, and those of a
            cross-validation are drawn for every tau, from full-data best subsets at the gamma of the model (computed
            within ten seconds).
        gamma : float, optional
            Gamma of a path to draw; the middle one by default.

        Returns
        -------
        matplotlib Axes
            The axes.
        """
        return find_implementation("plot_coefficients")(self, ax, _read(self, data), gamma)


class DrawnSearch(DrawnModel):
    """Methods that draw figures of a cross-validation record."""

    def plot_cv_error(self, ax: Axes | None = None) -> Axes:
        """Draw the CV error by tau with certified intervals, one standard error to each side, and the choice."""
        return find_implementation("plot_cv_error")(self, ax)

    def plot_grid(self, ax: Axes | None = None) -> Axes:
        """Draw a heat map of the CV error of all pairs (tau, gamma), hatched for pairs excluded by bound."""
        return find_implementation("plot_grid")(self, ax)

    def plot_bounds(self, ax: Axes | None = None) -> Axes:
        """Draw the difference of the certified lower bounds of all pairs from the minimum CV error."""
        return find_implementation("plot_bounds")(self, ax)

    def plot_features(self, ax: Axes | None = None) -> Axes:
        """Draw the number of folds that choose each feature at the reported pair."""
        return find_implementation("plot_features")(self, ax)

    def plot_baselines(self, ax: Axes | None = None) -> Axes:
        """Draw the CV errors of the reported pair and of the baselines, with the certified bounds of the grid."""
        return find_implementation("plot_baselines")(self, ax)

    def plot_inclusion(self, ax: Axes | None = None) -> Axes:
        """Draw the share of bootstrap draws, or else of halves of stability selection, that choose each feature."""
        return find_implementation("plot_inclusion")(self, ax)

    def plot_intervals(self, ax: Axes | None = None) -> Axes:
        """Draw the percentile intervals of the coefficients over bootstrap draws."""
        return find_implementation("plot_intervals")(self, ax)

    def plot_roc(self, data: Any, ax: Axes | None = None, folds: Any = None) -> Axes:
        """Draw the ROC curve of held-out rows of a logistic record; needs its data, and folds that came from Python."""
        return find_implementation("plot_roc")(self, _read(self, data), ax, folds)

    def plot_calibration(self, data: Any, ax: Axes | None = None, folds: Any = None) -> Axes:
        """Draw the reliability curve of held-out rows of a logistic record; needs the same as `plot_roc`."""
        return find_implementation("plot_calibration")(self, _read(self, data), ax, folds)

    def predict_interval(self, X: Any, level: float = 0.9, data: Any = None, folds: Any = None) -> FloatArray:
        """Return CV+ prediction intervals of new rows (Barber and others 2021), from the models of the folds.

        The models are fitted again to the data of the record. If new rows are exchangeable with these data, and tau and
        gamma were not chosen by the same folds, the coverage is at least `2 level - 1`, minus `sqrt(2 / n)` for K
        folds. In practice it is usually close to `level` (docs/theory/intervals.md).

        Parameters
        ----------
        X : path, pandas.DataFrame, table with `__arrow_c_stream__`, Dataset or (m, p) array_like
            New rows, as for `predict`.
        level : float
            Target coverage of new rows.
        data : path, pandas.DataFrame, table with `__arrow_c_stream__`, or Dataset
            Data of the record, as passed to `solve`; required.
        folds : FoldPlan, splitter, labels or pairs, optional
            Folds of the record, if it does not describe them; by default they are rebuilt from the record.

        Returns
        -------
        (m, 2) array
            Lower and upper bounds, in units of the target.

        Raises
        ------
        BadInput
            If there are weights or an averaged model, the folds do not hold out every row once, there are too few rows
            for the level, or the data differ from those of the record.

        Examples
        --------
        >>> import sparsecv_mio as sc
        >>> data = sc.read_dataset("instances/prostate.csv", target="lpsa")
        >>> record = sc.solve(data, gammas=[0.01, 0.1, 1.0])
        >>> record.predict_interval(data.X[:2], data=data).round(2).tolist()
        [[-0.48, 2.26], [-0.63, 2.18]]
        """
        made: FloatArray = find_implementation("predict_interval")(self, X, level, data, folds)
        return made
