"""What the data add to a record."""

from __future__ import annotations

import dataclasses
import io
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from interval_problem import interval_problem
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, QuadMesh
from matplotlib.figure import Figure
from slow import slow

from sparsecv_mio.certificate.fit_records import PathRecord
from sparsecv_mio.certificate.parts import ChosenFolds
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.weights import weighted_rows
from sparsecv_mio.errors import BadInput
from sparsecv_mio.fits.best_subsets import best_subsets
from sparsecv_mio.fits.one import fit_one
from sparsecv_mio.report import record_plots
from sparsecv_mio.report.document import Picture
from sparsecv_mio.report.figures import shorten_names
from sparsecv_mio.report.record_plots import (
    draw_panel,
    figure_of,
    fitted_rows,
    plot_every_gamma,
    plot_surface,
)
from sparsecv_mio.report.record_report import report_of, report_text
from sparsecv_mio.report.record_tables import interval_lines
from sparsecv_mio.report.size_rows import best_by_tau
from sparsecv_mio.search.api import cross_validate

from .printing import data


def test_other_data_are_refused_and_weights_are_those_of_the_record(record: Record) -> None:
    counts = np.arange(data().n) % 3
    weighted = Dataset.from_arrays(data().X, data().y, data().names, data().target, {"w": counts})
    with pytest.raises(BadInput, match="not the data of the record"):
        fitted_rows(record, Dataset.from_arrays(data().X + 1.0, data().y, data().names, data().target))
    fitted = best_subsets(weighted_rows(weighted, counts, "w"), gammas=0.1, taus=2)
    assert fitted_rows(fitted, weighted).n == (counts > 0).sum() == fitted.data.n
    assert fitted.data.total_weight == counts.sum()


def test_the_cv_error_is_drawn_with_the_bounds_of_its_pieces() -> None:
    one = interval_problem(8, "4")
    record = cross_validate(one.data.dataset, one.folds, gammas="0.01..2", taus=[1, 2, 3], gap=1e-4)
    assert record.continuous is not None
    ax = plot_every_gamma(record, Figure().subplots())
    low, high = ax.get_ylim()
    assert low < record.lower <= record.upper < high and ax.get_xlim() == (0.01, 2.0)
    drawn = sum(np.isfinite(line.get_xdata()).sum() for line in ax.lines)  # type: ignore[arg-type]
    assert drawn == len(record.continuous.curve_gammas) + 1
    assert len(figure_of(record).axes) == 4
    pieces = len(record.continuous.pieces)
    line = interval_lines(record)[0]
    assert line.startswith(f"the interval of gamma is split into {pieces} pieces (over all tau): ")
    assert line.endswith(" with a lower bound from training losses only")
    unbounded = replace(record.continuous.pieces[0], lower=0.0)
    partly = replace(record.continuous, pieces=(unbounded, *record.continuous.pieces[1:]))
    assert interval_lines(replace(record, continuous=partly))[0] == f"{line}, 1 without a lower bound above 0"
    text = report_text(record, "html", "r.json", None, "d.csv")
    assert "every gamma" in text and "of any tau at any gamma from 0.01 to 2" in text


def test_the_surface_has_a_colour_for_every_piece() -> None:
    record = best_subsets(interval_problem(1, "4").data.dataset, gammas="0.01..5", taus=[2, 3])
    assert record.surface is not None
    ax = plot_surface(record, Figure().subplots())
    assert len(ax.collections) == 2 * len(record.surface.pieces)
    assert len(figure_of(record).axes) == 1
    assert "the colour changes where the subset changes" in report_text(record, "html", "r.json", None, "d.csv")


LONG = tuple(f"a very long name of a measured quantity, number {j} of many (in its units)" for j in range(5))


def drawn(name: str, *arguments: Any) -> Axes:
    figure = Figure(figsize=(6, 4), layout="constrained")
    ax: Axes = getattr(record_plots, name)(arguments[0], figure.subplots(), *arguments[1:])
    return ax


def cut_off(figure: Figure) -> bool:
    """Whether something does not lie within the figure, after its layout."""
    figure.draw_without_rendering()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return not (drawn.x0 >= -0.01 and drawn.y0 >= -0.01 and drawn.x1 <= width + 0.01 and drawn.y1 <= height + 0.01)


def unproved(record: Record) -> Record:
    """The record as if a limit had come before any proof: estimates alone."""
    rows = [dataclasses.replace(row, lower=0.0, upper=math.inf, folds_decided=0, estimate=True, status="open")
            for row in record.table]  # fmt: skip
    folds = record.chosen_folds
    open_ = ChosenFolds(folds.supports, folds.which, folds.error, np.zeros(len(folds), dtype=bool))
    return dataclasses.replace(record, status="limit", lower=0.0, upper=math.inf, estimate=True, table=tuple(rows),
                               chosen_folds=open_)  # fmt: skip


def renamed(record: Any) -> Any:
    """The record with names that are too long for a figure."""
    names = dict(zip(record.data.names, LONG, strict=False))
    folds = record.chosen_folds
    supports = tuple(tuple(names[name] for name in support) for support in folds.supports)
    return dataclasses.replace(
        record, data=dataclasses.replace(record.data, names=tuple(names[name] for name in record.data.names)),
        support=tuple(names[name] for name in record.support),
        coefficients={names[name]: value for name, value in record.coefficients.items()},
        chosen_folds=ChosenFolds(supports, folds.which, folds.error, folds.decided),
    )  # fmt: skip


def test_errors_intervals_and_the_choice_are_those_of_the_record(record: Record) -> None:
    ax = drawn("plot_cv_error", record)
    best = best_by_tau(record)
    points = np.concatenate([line.get_xydata() for line in ax.lines if line.get_marker() == "o"])
    assert sorted(map(tuple, points.tolist())) == [(row.tau, row.cv_error) for row in best]
    star = next(line for line in ax.lines if line.get_label() == "the choice")
    assert star.get_xydata().tolist() == [[record.tau, record.cv_error]]
    low, high = ax.get_ylim()
    for bar in ax.patches:
        row = next(row for row in best if row.tau == round(bar.get_x() + bar.get_width() / 2.0))
        assert bar.get_y() == max(row.lower, low)
        assert bar.get_y() + bar.get_height() == pytest.approx(min(row.upper, high))


def test_excluded_sizes_have_their_estimate_and_the_advice_for_the_curve(record: Record) -> None:
    rows = [
        row if row.tau == record.tau else dataclasses.replace(
            row, lower=row.cv_error * 0.8, upper=math.inf, folds_decided=0, estimate=True, status="excluded"
        ) for row in record.table
    ]  # fmt: skip
    excluded = dataclasses.replace(record, table=tuple(rows))
    shown = {row.tau: row.row.cv_error for row in best_by_tau(excluded) if row.excluded}
    ax = drawn("plot_cv_error", excluded)
    (crosses,) = (line for line in ax.lines if line.get_marker() == "x")
    low, high = ax.get_ylim()
    inside = {tau: error for tau, error in shown.items() if low < error < high}
    assert dict(crosses.get_xydata().tolist()) == inside and len(inside) < len(shown) == 2  # one is far too large
    assert crosses.get_label() == "estimate, excluded (not certified)"
    assert ax.get_title(loc="left").endswith("2 of 3 sizes are excluded; --gap 0 computes the CV error of every size")
    assert "\n" not in drawn("plot_cv_error", record).get_title(loc="left")


def test_the_title_states_the_minimum_and_the_reported_pair_on_two_lines(simplest: Record) -> None:
    least = simplest.least
    assert least is not None
    minimum, reported = draw_panel(simplest, "all").get_suptitle().splitlines()
    assert f"proved, minimum CV error: tau={least.tau}, " in minimum
    assert reported.startswith(f"reported by the one-standard-error rule: tau={simplest.tau}, ")


def test_a_pair_is_hatched_where_it_is_excluded(record: Record) -> None:
    rows = [dataclasses.replace(row, status="excluded" if row.tau == 3 else "open") for row in record.table]
    ax = drawn("plot_grid", dataclasses.replace(record, table=tuple(rows)))
    hatched = [one for one in ax.collections if isinstance(one, PatchCollection)]
    assert len(hatched[0].get_paths()) == 3 and hatched[0].get_hatch()
    assert all(round(path.get_extents().x0 + 0.5) == 2 for path in hatched[0].get_paths())
    mesh = next(one for one in ax.collections if isinstance(one, QuadMesh))
    worse = np.asarray(mesh.get_array()).reshape(3, 3)
    least = min(row.cv_error for row in record.table)
    expected = [[100.0 * (row.cv_error / least - 1.0) for row in rows if row.gamma == gamma] for gamma in
                sorted({row.gamma for row in rows})]  # fmt: skip
    assert worse == pytest.approx(np.array(expected))


def test_bounds_are_drawn_beside_the_least_cv_error(record: Record) -> None:
    """Above it is what is proved to be worse; below, what is not."""
    ax = drawn("plot_bounds", record)
    mesh = next(one for one in ax.collections if isinstance(one, QuadMesh))
    shown = np.ma.masked_array(mesh.get_array()).reshape(3, -1)
    gammas = sorted({row.gamma for row in record.table})
    best = record.gamma, record.tau
    expected = [[math.nan if (gamma, row.tau) == best else 100.0 * (row.lower / record.upper - 1.0)
                 for row in record.table if row.gamma == gamma] for gamma in gammas]  # fmt: skip
    values = np.ma.masked_array(shown).filled(math.nan)
    assert values == pytest.approx(np.array(expected), nan_ok=True)
    assert ax.get_title(loc="left") == "certified: 8 of 8 other pairs have a larger CV error"
    cut = dataclasses.replace(record, table=tuple(dataclasses.replace(row, lower=0.0) for row in record.table),
                              upper=math.inf)  # fmt: skip
    mesh = next(one for one in drawn("plot_bounds", cut).collections if isinstance(one, QuadMesh))
    assert set(np.ma.masked_array(mesh.get_array()).compressed()) == {-100.0}


def test_bars_count_the_folds_that_choose_a_feature(record: Record) -> None:
    ax = drawn("plot_features", record)
    count = {name: sum(name in fold.support for fold in record.chosen_folds) for name in record.data.names}
    labels = [text.get_text() for text in ax.get_yticklabels()]
    lengths = {round(bar.get_y() + bar.get_height() / 2): 0.0 for bar in ax.patches}
    for bar in ax.patches:
        lengths[round(bar.get_y() + bar.get_height() / 2)] += bar.get_width()
    drawn_of = {name: lengths[labels.index(cut)] for name, cut in zip(count, shorten_names(list(count)), strict=True)
                if cut in labels}  # fmt: skip
    assert drawn_of == {name: number for name, number in count.items() if number}


@pytest.mark.parametrize("change", [unproved, renamed, *slow([lambda r: r])])
def test_nothing_is_cut_off(change: Any, record: Record) -> None:
    changed = change(record)
    assert not cut_off(figure_of(changed))
    for block in (block for section in report_of(changed).sections for block in section.blocks):
        if isinstance(block, Picture):
            figure = Figure(figsize=block.size, layout="constrained")
            block.draw(figure.subplots())
            assert not cut_off(figure), block.name


def test_records_of_one_pair_of_a_path_and_of_a_fit(record: Record, path: PathRecord) -> None:
    one = tuple(row for row in record.table if (row.gamma, row.tau) == (record.gamma, record.tau))
    one_tau = tuple(row for row in record.table if row.tau == record.tau)
    for table in (one, one_tau):
        assert not cut_off(figure_of(dataclasses.replace(record, table=table)))
    fit = fit_one(data(), tau=2, gamma=0.1)
    for other in (path, fit):
        assert not cut_off(draw_panel(other, "all")) and not cut_off(draw_panel(other, "coefficients"))
        with pytest.raises(BadInput, match="requires a record of `solve`"):
            draw_panel(other, "grid")
    for panel in ("cv-error", "grid", "bounds", "features", "coefficients"):
        assert len(draw_panel(record, panel).axes) >= 1


def test_names_with_dollars_and_underscores_are_drawn_as_they_are() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3))
    names = ["$x_$ per $y_$", "_under", "a\\$b$"]
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=40) / 9.0
    data = Dataset.from_arrays(X, np.where(y > 0.0, 1.0, 0.0), names, "$y_$ $")
    record = cross_validate(data, "5", gammas=[1.0], taus=[2, 3], loss="logistic")
    picture = io.StringIO()
    figure = figure_of(record, data)
    figure.savefig(picture, format="svg")  # a formula of "$x_$" would be an error
    ticks = [label.get_text() for ax in figure.axes for label in ax.get_yticklabels()]
    assert r"\$x_\$ per \$y_\$" in ticks and " _under" in ticks
