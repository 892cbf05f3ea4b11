"""Figures over an interval of gamma hold the pieces, the curve and the choice."""

from __future__ import annotations

from interval_problem import interval_problem
from matplotlib.figure import Figure

from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.report.interval_plots import plot_every_gamma, plot_surface
from sparsecv_mio.report.record_plots import figure_of
from sparsecv_mio.report.record_report import report_text
from sparsecv_mio.search.api import cross_validate


def test_the_cv_error_is_drawn_with_the_bounds_of_its_pieces() -> None:
    one = interval_problem(8, "4")
    record = cross_validate(one.data.dataset, one.folds, gammas="0.01..2", taus=[1, 2, 3], gap=1e-4)
    assert record.continuous is not None
    ax = plot_every_gamma(record, Figure().subplots())
    low, high = ax.get_ylim()
    assert low < record.lower <= record.upper < high and ax.get_xlim() == (0.01, 2.0)
    drawn = sum(len(line.get_xdata()) for line in ax.lines)  # type: ignore[arg-type]
    assert drawn == len(record.continuous.curve_gammas) + 1
    assert len(figure_of(record).axes) == 4
    text = report_text(record, "html", "r.json", None, "d.csv")
    assert "every gamma" in text and "of any tau at any gamma from 0.01 to 2" in text


def test_the_surface_has_a_colour_for_every_piece() -> None:
    record = best_subsets(interval_problem(1, "4").data.dataset, gammas="0.01..5", taus=[2, 3])
    assert record.surface is not None
    ax = plot_surface(record, Figure().subplots())
    assert len(ax.collections) == 2 * len(record.surface.pieces)
    assert len(figure_of(record).axes) == 1
    assert "a colour changes where the subset does" in report_text(record, "html", "r.json", None, "d.csv")
