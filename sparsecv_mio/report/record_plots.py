"""Figures of a record: the CV error by tau, by pair and by gamma, certified bounds, chosen features, coefficients.

Every function draws one panel and returns its axes; `figure_of` draws several panels of a record side by side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecv_mio.certificate.fit_records import CommonRecord, FitRecord, PathRecord, Surface
from sparsecv_mio.certificate.parts import ChosenFolds
from sparsecv_mio.certificate.read_back import AnyRecord, adapt_to_record_loss, is_from_python, weighted_again
from sparsecv_mio.certificate.records import Least, PathRow, Record
from sparsecv_mio.certificate.restrictions import restrictions_of
from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.digits import format_number
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report import figures
from sparsecv_mio.report.class_pictures import PredictedClasses, draw_calibration, draw_roc
from sparsecv_mio.report.class_pictures import plot_calibration as plot_calibration
from sparsecv_mio.report.class_pictures import plot_roc as plot_roc
from sparsecv_mio.report.coefficients import against, requested_references, spreads
from sparsecv_mio.report.optional_parts import plot_baselines, plot_inclusion, plot_intervals, plot_sources
from sparsecv_mio.report.size_rows import SizeRow, advise_full_curve, best_by_tau, rows_of_pairs, words_of_gamma
from sparsecv_mio.report.time_pictures import (
    FittedHazards,
    HeldOutTimes,
    draw_baseline,
    draw_hazards,
    draw_risk_groups,
    draw_survival_calibration,
)
from sparsecv_mio.targets import Loss

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def fitted_rows(record: AnyRecord, data: Dataset) -> Dataset:
    """Return the data of a record as they were fitted, with row weights.

    Raises
    ------
    BadInput
        If the data differ from those of the record.
    """
    data = weighted_again(record.data, adapt_to_record_loss(record, data))
    if data.fingerprint != record.data.fingerprint:
        words = "these are not the data of the record (their fingerprints differ); give the data that the record was"
        raise BadInput(f"{words} made from")
    return data


def compute_path(record: Record, data: Dataset, seconds: float) -> PathRecord:
    """Return the full-data best subsets of the tried sizes, at the gamma of the model of the record.

    Parameters
    ----------
    data : Dataset
        Data from `fitted_rows`.
    seconds : float
        Time limit in seconds.
    """
    from sparsecv_mio.fits.best_subsets import best_subsets
    from sparsecv_mio.fits.fit_options import PathOptions

    options = PathOptions.of_record(record, seconds)
    return best_subsets(data, gammas=[record.refit.gamma], taus=record.request.taus, options=options)


FAR_OVER_GAMMA = 1.2  # times the least CV error: what lies beyond is cut at the frame
Spots = dict[tuple[float, int], tuple[int, int]]  # position of each pair on a heat map


def plot_every_gamma(record: Record, ax: Axes) -> Axes:
    """Draw the CV error of the reported tau over the interval of gamma, and the bound of every piece.

    Parameters
    ----------
    record : Record
        Record with an interval of gamma.

    Returns
    -------
    matplotlib Axes
        The axes; the band lies between the certified lower bound and the CV error found, and jumps show changes of the
        best subset of a fold.
    """
    figures.tidy(ax)
    found = record.continuous
    assert found is not None
    for is_own, colour, label in (
        (False, figures.FAINT, "bounds of other tau"), (True, figures.LOWER, f"bound at tau = {record.tau}"),
    ):  # fmt: skip
        bounds = [(piece.lower, piece.low, piece.high) for piece in found.pieces if (piece.tau == record.tau) == is_own]
        if bounds:
            ax.hlines(*np.transpose(bounds), color=colour, linewidth=1.4, label=label)
    gammas, errors = np.array(found.curve_gammas), np.array(found.curve_errors)
    step = 3.0 * np.log(found.high / found.low) / max(len(gammas), 200)
    unknown = np.flatnonzero(np.diff(np.log(gammas)) > step) + 1  # the curve has gaps where it is not known
    curve = (np.insert(values, unknown, np.nan) for values in (gammas, errors))
    ax.plot(*curve, color=figures.UPPER, linewidth=1.2, label=f"CV error at tau = {record.tau}")
    ax.plot([record.gamma], [record.cv_error], "*", color=figures.INK, markersize=12, label="the choice", zorder=5)
    top = min(float(errors.max(initial=record.cv_error)), FAR_OVER_GAMMA * record.cv_error)
    room = max(top - record.lower, 1e-3 * record.cv_error)
    ax.set(xscale="log", xlabel="gamma (ridge weight)", ylabel="CV error", xlim=(found.low, found.high))
    if np.isfinite(top):
        ax.set_ylim(record.lower - 0.15 * room, top + 0.1 * room)
    ends = f"{format_number(found.low, 3)} to {format_number(found.high, 3)}"
    figures.write_title(ax, f"CV error, every gamma from {ends}")
    figures.draw_outer_legend(ax)
    return ax


def plot_surface(record: PathRecord, ax: Axes) -> Axes:
    """Draw the best subset of every tau as a function of gamma: one colour for each subset, a line at each change.

    Parameters
    ----------
    record : PathRecord
        Record with an interval of gamma.

    Returns
    -------
    matplotlib Axes
        The axes.
    """
    import matplotlib as mpl

    figures.tidy(ax)
    surface: Surface | None = record.surface
    assert surface is not None
    colours, taus = mpl.colormaps["tab20"], sorted({piece.tau for piece in surface.pieces})
    for tau in taus:
        order: dict[int, int] = {}
        for piece in (other_piece for other_piece in surface.pieces if other_piece.tau == tau):
            place = order.setdefault(piece.supports[0], len(order)) if piece.proved else -1
            colour = "white" if place < 0 else colours((3 * tau + 2 * place) % colours.N)
            ax.fill_between([piece.low, piece.high], tau - 0.4, tau + 0.4, color=colour, linewidth=0.0)
            ax.vlines(piece.high, tau - 0.4, tau + 0.4, color=figures.INK, linewidth=0.6)
    ax.set(xscale="log", xlabel="gamma (ridge weight)", ylabel=_size_label(record), xlim=(surface.low, surface.high))
    figures.set_integer_ticks(ax.yaxis)
    ax.set_ylim(taus[0] - 0.6, taus[-1] + 0.6)
    figures.write_title(ax, "best subset of every size: the colour changes where the subset changes")
    return ax


MANY_BOXES = 2000  # boxes of a heat map, from which an image is smaller than a list of boxes
CUT_BEYOND = 4.0  # multiple of the minimum CV error at which the frame cuts the plot
WIDER = 0.4  # margin of the axis beyond the CV errors, for bounds, as a share of their range
PER_CENT_STEPS = (-100.0, -50.0, -20.0, -5.0, 0.0, 5.0, 20.0, 50.0, 100.0)  # lower bound minus minimum CV error, in %
LEAST_BAND = 1e-3  # share of the axis, below which an interval is not visible
PATH_SECONDS = 10.0  # seconds for the full-data best subsets of a figure
CURVES_HEIGHT = 5.2  # inches of the ROC curve and the calibration plot below the other panels
EXCLUDED = "#8a8f98"  # colour of excluded pairs
SIZE = {"*": 13.0, "D": 8.0}
KINDS = {  # of a mark: True if it is filled, its colour and its shape
    "CV error ± standard error": (True, figures.LOWER, "o"),
    "estimate ± standard error": (False, figures.LOWER, "o"),
    "lower bound, excluded": (False, EXCLUDED, "^"),
}


def plot_cv_error(record: Record, ax: Axes | None = None) -> Axes:
    """Draw the CV error of every tau at its best gamma, or by gamma for a single tau.

    Parameters
    ----------
    record : Record
        Record of a search.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes; bands are certified intervals, and bars are one standard error over the folds to each side. Crosses
        are estimates of excluded sizes, which are not certified.
    """
    ax = figures.prepare_axes(ax)
    by_gamma = len({row.tau for row in record.table}) == 1 < len({row.gamma for row in record.table})
    rows = sorted(rows_of_pairs(record), key=lambda pair: pair.row.gamma) if by_gamma else best_by_tau(record)
    at = np.arange(len(rows)) if by_gamma else np.array([row.tau for row in rows])
    bottom, top = _range(rows)
    _bands(ax, at, rows, bottom, top)
    _dots(ax, at, rows, top)
    _mark_choices(ax, record, at, rows, top)
    ax.set(ylim=(bottom, top), ylabel="CV error", xlabel="gamma (ridge weight)" if by_gamma else _size_label(record))
    if by_gamma:
        figures.places(ax, "x", [f"{pair.row.gamma:.3g}" for pair in rows])
        figures.write_title(ax, f"CV error at tau = {rows[0].tau}")
    else:
        figures.whole_numbers(ax, at.tolist())
        one_gamma = len({row.gamma for row in record.table}) == 1
        gamma = f"gamma = {format_number(rows[0].row.gamma, 4)}" if one_gamma else f"every tau {words_of_gamma(record)}"
        figures.write_title(ax, "\n".join(filter(None, (f"CV error, {gamma}", advise_full_curve(record)))))
    figures.draw_outer_legend(ax)
    return ax


def _mark_choices(ax: Axes, record: Record, at: Any, rows: Sequence[SizeRow], top: float) -> None:
    """Mark the choice, the minimum CV error and the level one standard error above it."""
    best = record.certificate
    width = next((size_row.row.standard_error for size_row in rows if size_row.is_pair(best)), None)
    if width:
        style = (0, (4, 3))
        label = "minimum CV error + standard error"
        ax.axhline(best.cv_error + width, color=figures.INK, linewidth=0.8, linestyle=style, zorder=1, label=label)
    for choice, marker, label in _choices(record):
        own = [k for k, size_row in enumerate(rows) if size_row.is_pair(choice)]
        if own and math.isfinite(choice.cv_error):
            _mark(ax, at[own[0]], min(choice.cv_error, top), marker, label)


def _choices(record: Record) -> list[tuple[Record | Least, str, str]]:
    """Return the marked pairs with their marker and name."""
    choices: list[tuple[Record | Least, str, str]] = [(record, "*", "the choice")]
    return choices if record.least is None else [*choices, (record.least, "D", "minimum CV error")]


def _mark(ax: Axes, x: float, y: float, marker: str, label: str) -> None:
    ax.plot(x, y, marker, color=figures.UPPER, markersize=SIZE[marker], markeredgecolor="white", linestyle="none",
            label=label, zorder=5)  # fmt: skip


def _range(rows: Sequence[SizeRow]) -> tuple[float, float]:
    """Return the limits of the vertical axis: all CV errors and their bars, and bands unless they are much wider."""
    bars = [(size_row.cv_error, _width(size_row) or 0.0) for size_row in rows if math.isfinite(size_row.cv_error)]
    if not bars:
        highest = max([row.upper for row in rows if math.isfinite(row.upper)] or [row.lower for row in rows])
        return 0.0, 1.05 * highest or 1.0
    errors, widths = np.array(bars).T
    least, low, high = float(errors.min()), float((errors - widths).min()), float((errors + widths).max())
    high = min(high, CUT_BEYOND * least) if least > 0.0 else high
    room, ends = (high - low) or abs(high) or 1.0, []
    for size_row in rows:
        more = room if size_row.is_solved else WIDER * room
        ends += [end for end in (size_row.lower, size_row.upper) if low - more <= end <= high + more]
    ends += [error for _, error in _excluded_estimates(rows) if error <= CUT_BEYOND * least]
    low, high = min([low, *ends]), max([high, *ends])
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return max(low - room, 0.0) if low >= 0.0 else 0.0, high + room


def _bands(ax: Axes, at: Any, rows: Sequence[SizeRow], bottom: float, top: float) -> None:
    """Draw the certified intervals as steps, one for every value."""
    low, high = np.clip([(row.lower, row.upper) for row in rows], bottom, top).T
    seen = high - low > LEAST_BAND * (top - bottom)
    if seen.any():
        ax.bar(at[seen], (high - low)[seen], bottom=low[seen], width=0.9, color=figures.LOWER, alpha=0.2, linewidth=0,
               label="certified interval", zorder=2)  # fmt: skip


def _kind(one: SizeRow) -> str:
    if one.excluded:
        return "lower bound, excluded"
    return f"{'CV error' if one.is_solved else 'estimate'} ± standard error"


def _width(one: SizeRow) -> float | None:
    """Return the standard error of a CV error; that of an excluded row would belong to an estimate that is too low."""
    return None if one.excluded else one.row.standard_error


def _dots(ax: Axes, at: Any, rows: Sequence[SizeRow], top: float) -> None:
    """Draw the CV errors with their standard errors; the marker shows whether they are certified, or only bounds."""
    size = 5.0 if len(rows) <= figures.MANY_MARKS else 3.0
    for kind, (filled, colour, shape) in KINDS.items():
        mine = [k for k, size_row in enumerate(rows) if _kind(size_row) == kind and math.isfinite(size_row.cv_error)]
        inside = [k for k in mine if rows[k].cv_error <= top]
        if inside:
            errors = [rows[k].cv_error for k in inside]
            widths = [_width(rows[k]) or math.nan for k in inside]
            ax.errorbar(
                at[inside], errors, None if all(map(math.isnan, widths)) else widths, fmt=shape, color=colour,
                markerfacecolor=colour if filled else "white", markersize=size, elinewidth=0.9, capsize=2.0,
                label=kind, zorder=4,
            )  # fmt: skip
        beyond = [k for k in mine if rows[k].cv_error > top]
        if beyond:  # an empty line that is not clipped would still take space
            ax.plot(at[beyond], np.full(len(beyond), top), "^", color=colour, markersize=size, clip_on=False, zorder=4,
                    linestyle="none", label=f"{kind}, above the frame")  # fmt: skip
    estimates = [(at[k], error) for k, error in _excluded_estimates(rows) if error <= top]
    if estimates:
        ax.plot(*np.transpose(estimates), "x", color=EXCLUDED, markersize=size, linestyle="none",
                label="estimate, excluded (not certified)", zorder=4)  # fmt: skip


def _excluded_estimates(rows: Sequence[SizeRow]) -> list[tuple[int, float]]:
    """Return the places of excluded rows that have an estimate but no upper bound, with the estimate."""
    return [(k, size_row.row.cv_error) for k, size_row in enumerate(rows) if size_row.has_estimate_and_bound]


def plot_grid(record: Record, ax: Axes | None = None) -> Axes:
    """Draw a heat map of the CV error over tau and gamma, hatched for pairs excluded by bound.

    Parameters
    ----------
    record : Record
        Record of a search.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes; pairs without a CV error are empty.
    """
    ax = figures.prepare_axes(ax)
    spot = _spots(ax, record)
    _draw_errors(ax, _values(spot, {(row.gamma, row.tau): row.cv_error for row in record.table}))
    _hatch(ax, [spot[row.gamma, row.tau] for row in record.table if row.status == "excluded"])
    open_pairs = [spot[row.gamma, row.tau] for row in record.table if row.status == "open"]
    if open_pairs:
        ax.plot(*np.transpose(open_pairs), ".", color="white", markersize=5, markeredgecolor=figures.INK,
                markeredgewidth=0.6, linestyle="none", label="not excluded", zorder=4)  # fmt: skip
    _finish(ax, record, spot, "CV error of every pair")
    return ax


def plot_bounds(record: Record, ax: Axes | None = None) -> Axes:
    """Draw the difference of the certified lower bound of every pair from the minimum CV error, over tau and gamma.

    Parameters
    ----------
    record : Record
        Record of a search.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes. The CV error of green pairs is certified to be above the minimum by at least this amount. For brown
        pairs the lower bound is below the CV error of the best pair. The best pair is empty.
    """
    import matplotlib as mpl
    from matplotlib.colors import BoundaryNorm, ListedColormap

    ax, pair = figures.prepare_axes(ax), record.certificate
    spot, best, is_known = _spots(ax, record), pair.upper, 0.0 < pair.upper < math.inf
    others = {(row.gamma, row.tau): row.lower for row in record.table if (row.gamma, row.tau) != (pair.gamma, pair.tau)}
    above = {place: 100.0 * (lower / best - 1.0) if is_known else -100.0 for place, lower in others.items()}
    values = _values(spot, above)
    colours = mpl.colormaps["BrBG"]([0.1, 0.2, 0.28, 0.36, 0.64, 0.72, 0.8, 0.9])  # a step at the best pair
    extend = "max" if float(np.nanmax(values, initial=0.0)) > PER_CENT_STEPS[-1] else "neither"
    _draw_colours(ax, values, "lower bound, % above the minimum CV error", extend, cmap=ListedColormap(colours),
                  norm=BoundaryNorm(PER_CENT_STEPS, len(colours)), rasterized=values.size > MANY_BOXES)  # fmt: skip
    worse = sum(lower > best for lower in others.values())
    kinds = (5, worse, "certified: larger CV error"), (2, len(others) - worse, "not certified")
    for colour, many, label in kinds:
        if many:
            ax.plot([], [], "s", color=colours[colour], linestyle="none", label=label)
    _finish(ax, record, spot, f"certified: {worse:,} of {len(others):,} other pairs have a larger CV error")
    return ax


def _spots(ax: Axes, record: Record) -> Spots:
    """Give every tau and gamma a position on the axes; return the positions of the pairs."""
    taus, gammas = sorted({row.tau for row in record.table}), sorted({row.gamma for row in record.table})
    figures.places(ax, "x", [str(tau) for tau in taus])
    figures.places(ax, "y", [f"{gamma:.3g}" for gamma in gammas])
    ax.set(xlabel=_size_label(record), ylabel="gamma (ridge weight)")
    return {(row.gamma, row.tau): (taus.index(row.tau), gammas.index(row.gamma)) for row in record.table}


def _values(spot: Spots, known: Mapping[tuple[float, int], float]) -> Any:
    """Return the values of pairs as an array, NaN for missing and unknown ones."""
    values = np.full(1 + np.max(list(spot.values()), axis=0)[::-1], np.nan)
    for pair, value in known.items():
        t, g = spot[pair]
        values[g, t] = value if math.isfinite(value) else np.nan
    return values


def _finish(ax: Axes, record: Record, spot: Spots, title: str) -> None:
    """Mark the choices on a heat map, and add its title and legend."""
    for choice, marker, label in _choices(record):
        if (choice.gamma, choice.tau) in spot:
            _mark(ax, *spot[choice.gamma, choice.tau], marker, label)
    figures.write_title(ax, title)
    figures.draw_outer_legend(ax)


def _draw_colours(ax: Axes, values: Any, words: str, extend: str = "neither", **how: Any) -> None:
    """Draw an array of numbers as colours, with a colour bar."""
    rows, columns = (np.arange(count + 1) - 0.5 for count in values.shape)
    figure = ax.get_figure()
    assert figure is not None
    cells = np.ma.masked_invalid(values)
    mesh = ax.pcolormesh(columns, rows, cells, edgecolors="face", linewidth=0.2, **how)
    bar = figure.colorbar(mesh, ax=ax, extend=extend, pad=0.02)
    bar.set_label(words, color=figures.INK, size=9)
    bar.ax.tick_params(color=figures.INK, labelcolor=figures.INK, labelsize=8)
    bar.outline.set_visible(False)


def _hatch(ax: Axes, cells: Sequence[tuple[int, int]]) -> None:
    """Hatch the boxes of excluded pairs."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    if not cells:
        return
    style: dict[str, Any] = {"facecolor": "none", "edgecolor": EXCLUDED, "hatch": "////"}
    boxes = [Rectangle((t - 0.5, g - 0.5), 1.0, 1.0) for t, g in cells]
    ax.add_collection(PatchCollection(boxes, **style, linewidth=0))
    label = "excluded: the CV error may be higher than the colour shows"
    ax.bar([0], [0], bottom=[-9], **style, label=label)


def plot_features(record: Record, ax: Axes | None = None) -> Axes:
    """Draw the number of folds that choose each feature, at the reported pair.

    Parameters
    ----------
    record : Record
        Record of a search.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes. Features on which folds differ come first, and features of the full-data model are highlighted. If
        there are very many features, the last ones are omitted.
    """
    decided, open_ = selection_counts(record.chosen_folds)
    order, count = record.data.names.index, len(record.chosen_folds)
    times = {name: decided[name] + open_[name] for name in {*decided, *record.support}}
    every = sorted(times, key=lambda name: (times[name] in (0, count), -times[name], order(name)))
    title = f"folds that select each feature, tau = {record.tau}"
    ax, names = figures.prepare_rows(ax, every, record.data.names, title)
    solved, unsolved = (np.array([by[name] for name in names], dtype=int) for by in (decided, open_))
    inside = np.isin(names, record.support)
    figures.draw_feature_bars(ax, solved, inside)
    colours = np.where(inside, figures.LOWER, figures.FAINT)
    ax.barh(np.arange(len(names)), unsolved, left=solved, color=colours, height=0.7, alpha=0.45)
    if unsolved.any():
        ax.barh([0], [0], color=figures.LOWER, alpha=0.45, label="pale: subset not certified optimal")
    figures.whole_numbers(ax, [0, count])
    ax.set(xlim=(0, 1.02 * count), xlabel=f"folds, of {count:,}{_sign_note(record)}")
    figures.draw_outer_legend(ax)
    return ax


def _size_label(record: AnyRecord) -> str:
    return f"tau ({restrictions_of(record).unit_of_tau}s)"


def _sign_note(record: Record) -> str:
    limits = record.request.restrictions
    signed = limits is not None and bool(limits.nonnegative or limits.nonpositive)
    return "; folds in which a sign constraint sets a coefficient to 0 do not count" if signed else ""


def selection_counts(folds: ChosenFolds) -> tuple[Counter[str], Counter[str]]:
    """Return, by feature, the number of folds that choose it: folds with a proved support, and other folds."""
    decided, others = Counter[str](), Counter[str]()
    count = np.bincount(folds.which, minlength=len(folds.supports))
    sure = np.bincount(folds.which[folds.decided], minlength=len(folds.supports))
    for support, of_all, is_decided in zip(folds.supports, count.tolist(), sure.tolist(), strict=True):
        for name in support:
            decided[name] += is_decided
            others[name] += of_all - is_decided
    return decided, others


def plot_coefficients(
    record: AnyRecord, ax: Axes | None = None, data: Dataset | None = None, gamma: float | None = None
) -> Axes:
    """Draw coefficients of every tau (for a path, or with data), or of the single model of a record.

    Parameters
    ----------
    record : record of any command
        Record.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.
    data : Dataset, optional
        Data of the record. Coefficients are then for columns and a target of standard deviation 1. A `Record` is drawn
        as the path of full-data best subsets at the gamma of the model, computed in at most 10 seconds.
    gamma : float, optional
        Gamma of a path to draw; by default the middle one.

    Returns
    -------
    matplotlib Axes
        The axes; without data, the colours of a path are relative to the largest coefficient of each feature.
    """
    size, references = record.refit.tau if isinstance(record, Record) else None, requested_references(record)
    if data is not None:
        data = fitted_rows(record, data)
        record = compute_path(record, data, PATH_SECONDS) if isinstance(record, Record) else record
    record = against(record, references)
    if not isinstance(record, PathRecord):
        return _draw_model(record, ax, data)
    gammas = sorted({row.gamma for row in record.path})
    wanted = gammas[len(gammas) // 2] if gamma is None else min(gammas, key=lambda one: abs(one - gamma))
    rows = sorted((row for row in record.path if row.gamma == wanted), key=lambda row: row.tau)
    ax = _draw_path(record, rows, ax, data)
    place = next((k for k, row in enumerate(rows) if row.tau == size), None)
    if place is not None:
        ax.axvspan(place - 0.5, place + 0.5, facecolor="none", edgecolor=figures.INK, linewidth=1.2, label="the model")
        figures.draw_outer_legend(ax)
    return ax


def standard_units(names: Sequence[str], data: Dataset) -> dict[str, float]:
    """Return, by name, the factors that convert coefficients to standardised columns (and target, squared error)."""
    has_unit = data.classes is not None or data.counts or data.survival is not None
    spread = 1.0 if has_unit else float(data.y.std(ddof=min(1, data.n - 1))) or 1.0
    return {name: value / spread for name, value in spreads(data, names).items()}


def _units(data: Dataset | None) -> str:
    """Return the unit of coefficients in a figure."""
    if data is None:
        return "coefficient, in units of the file"
    if data.counts:
        return "log rate per standard deviation"
    if data.survival is not None:
        return "log hazard ratio per standard deviation"
    return "standardised coefficient" if data.classes is None else "log odds per standard deviation"


def _order_features(rows: Sequence[PathRow], columns: Sequence[str]) -> list[str]:
    """Return the features of a path, the most frequent first, then those of small models."""
    used = [name for name in columns if any(row.coefficients.get(name) for row in rows)]
    taus = {name: [row.tau for row in rows if name in row.coefficients] for name in used}
    return sorted(used, key=lambda name: (-len(taus[name]), min(taus[name])))


def _draw_path(record: PathRecord, rows: Sequence[PathRow], ax: Axes | None, data: Dataset | None) -> Axes:
    """Draw the coefficients of every size as colours."""
    columns, title = record.data.names, f"coefficients, gamma = {format_number(rows[0].gamma, 4)}"
    ax, names = figures.prepare_rows(ax, _order_features(rows, columns), columns, title, height=1.6)
    values = np.array([[row.coefficients.get(name, np.nan) for row in rows] for name in names]).reshape(-1, len(rows))
    words, end = "share of the row's maximum", 1.0
    if data is not None:
        values = values * np.array([*standard_units(names, data).values()])[:, None]
        words, end = _units(data), float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    elif names:
        largest = np.nanmax(np.abs(values), axis=1, keepdims=True)
        values = values / np.where(largest > 0.0, largest, 1.0)
    if names:
        _draw_colours(ax, values, words, cmap="RdBu_r", vmin=-end, vmax=end)
    figures.places(ax, "x", [f"{'' if row.proved else '~'}{row.tau}" for row in rows])
    ax.set_xlabel(_size_label(record) + ("" if all(row.proved for row in rows) else ", ~ not certified"))
    return ax


def _draw_model(record: Record | FitRecord | CommonRecord, ax: Axes | None, data: Dataset | None) -> Axes:
    """Draw the coefficients of a model as bars, the largest first."""
    effects = dict(record.coefficients)
    if data is not None:
        unit = standard_units(list(effects), data)
        effects = {name: value * unit[name] for name, value in effects.items()}
    largest_first = sorted(effects, key=lambda name: -abs(effects[name]))
    tau, gamma = (record.refit.tau, record.refit.gamma) if isinstance(record, Record) else (record.tau, record.gamma)
    title = f"model, tau = {tau}, gamma = {format_number(gamma, 4)}"
    ax, names = figures.prepare_rows(ax, largest_first, record.data.names, title)
    values = np.array([effects[name] for name in names])
    ax.barh(np.arange(len(names)), values, color=np.where(values < 0.0, figures.LOWER, figures.UPPER), height=0.7)
    for place, value in enumerate(values.tolist()):
        side, shift = ("left", 3) if value >= 0.0 else ("right", -3)
        ax.annotate(format_number(value, 3), (value, place), xytext=(shift, 0), textcoords="offset points", ha=side,
                    va="center", fontsize=8, color=figures.INK)  # fmt: skip
    ax.axvline(0.0, color=figures.INK, linewidth=0.8)
    low, high = float(values.min(initial=0.0)), float(values.max(initial=0.0))
    room = 0.2 * (high - low) or 1.0
    ax.set_xlim(low - (room if low < 0.0 else 0.0), high + (room if high > 0.0 or low == 0.0 else 0.0))
    ax.set_xlabel(_units(data))
    return ax


def _headline(record: AnyRecord) -> str:
    """Return the target and the answer as text."""
    if isinstance(record, Record):
        answer = "\n".join(filter(None, record.answer_lines()))
    else:
        answer = repr(record).partition("(")[2][:-1]
    return f"{figures.shorten_names([record.data.target])[0]}, {answer.replace(', inf]', ', ?]')}"


PANELS = {  # for records of a search
    "cv-error": plot_cv_error, "grid": plot_grid, "bounds": plot_bounds, "features": plot_features,
    "sources": plot_sources, "baselines": plot_baselines, "inclusion": plot_inclusion, "intervals": plot_intervals,
}  # fmt: skip
PANELS_OF_LOSS: dict[Loss, dict[str, tuple[Any, Callable[..., Axes]]]] = {  # what is drawn, and by which function
    Loss.LOGISTIC: {"roc": (PredictedClasses, draw_roc), "calibration": (PredictedClasses, draw_calibration)},
    Loss.COX: {
        "risk-groups": (HeldOutTimes, draw_risk_groups), "calibration": (HeldOutTimes, draw_survival_calibration),
        "baseline": (FittedHazards, draw_baseline), "hazards": (FittedHazards, draw_hazards),
    },
}  # fmt: skip


def draw_panel_of_loss(record: AnyRecord, panel: str, data: Dataset | None) -> Figure:
    """Return a figure with one panel of a loss; raise `BadInput` if the record does not have it."""
    own = PANELS_OF_LOSS.get(record.loss, {})
    if panel in own and record.data.has_matched_sets:
        raise BadInput(f"panel {panel}: matched sets have one time each, without survival curves; choose another panel")
    if not isinstance(record, Record) or panel not in own:
        losses = " or ".join(f"`solve --loss {loss}`" for loss, panels in PANELS_OF_LOSS.items() if panel in panels)
        raise BadInput(f"panel {panel}: requires a record of {losses}; choose another panel")
    if data is None:
        raise BadInput(f"panel {panel}: requires the data of the record, to predict its held-out rows; give --data")
    make, draw = own[panel]
    figure = figures.new_figure(5.2, 5.2)
    draw(record, make.from_record(record, data), figure.subplots())
    return figure


def draw_panel(record: AnyRecord, panel: str, data: Dataset | None = None) -> Figure:
    """Return a figure with one panel of a record.

    Parameters
    ----------
    panel : str
        Panel: all, cv-error, grid, bounds, features, sources, baselines, inclusion, intervals, coefficients, or one of
        `PANELS_OF_LOSS`, which require a loss and the data. All but coefficients require a record of `solve`.
        Baselines, inclusion and intervals require the option of `solve` that makes them.
    data : Dataset, optional
        Data as in `plot_coefficients`.

    Raises
    ------
    BadInput
        If the record does not have the panel.
    """
    if panel == "all":
        return figure_of(record, data)
    if any(panel in panels for panels in PANELS_OF_LOSS.values()):
        return draw_panel_of_loss(record, panel, data)
    if panel in PANELS and not isinstance(record, Record):
        raise BadInput(
            f"panel {panel}: requires a record of `solve`; this record supports only the panel 'coefficients'"
        )
    figure = figures.new_figure(7.5, 4.6)
    if panel in PANELS and isinstance(record, Record):
        if panel == "features":
            figure.set_figheight(1.6 + 0.24 * _n_visible(_count_chosen(record)))
        draw = partial(plot_intervals, data=data) if panel == "intervals" else PANELS[panel]
        draw(record, figure.subplots())
    else:
        figure.set_figheight(1.6 + 0.24 * _n_visible(count_coefficient_rows(record, data)))
        plot_coefficients(record, figure.subplots(), data)
    return figure


def count_coefficient_rows(record: AnyRecord, data: Dataset | None) -> int:
    """Return the number of features in the panel of coefficients: all for a path, otherwise those of the model."""
    if isinstance(record, PathRecord) or (data is not None and isinstance(record, Record)):
        return record.data.p
    return len(record.coefficients)


def _count_chosen(record: Record) -> int:
    """Return the number of features that some fold chooses."""
    return len({name for support in record.chosen_folds.supports for name in support})


def figure_of(record: AnyRecord, data: Dataset | None = None) -> Figure:
    """Return the figure of a record: its panels side by side, except sources, baselines, inclusion and intervals.

    Parameters
    ----------
    record : record of any command
        Record.
    data : Dataset, optional
        Data as in `plot_coefficients`.

    Returns
    -------
    matplotlib Figure
        The figure, which is independent of pyplot.
    """
    n_coefficients = count_coefficient_rows(record, data)
    if not isinstance(record, Record):
        figure = figures.new_figure(8.0, 1.9 + 0.26 * _n_visible(n_coefficients))
        if isinstance(record, PathRecord) and record.surface is not None:
            plot_surface(record, figure.subplots())
        else:
            plot_coefficients(record, figure.subplots(), data)
        figure.suptitle(_headline(record), fontsize=10, color=figures.INK)
        return figure
    tall = [1.6 + 0.2 * min(figures.MOST_FEATURES, max(8, count)) for count in (_count_chosen(record), n_coefficients)]
    sizes = [len({getattr(row, name) for row in record.table}) for name in ("tau", "gamma")]
    has_maps = record.continuous is None and min(sizes) > 1
    held_out_rows = _held_out_if_any(record, data)
    height = 5.0 + (sum(tall) if has_maps else max(tall))
    whole = figures.new_figure(13.0, height + (CURVES_HEIGHT if held_out_rows else 0.0))
    whole.suptitle(_headline(record), fontsize=11, color=figures.INK)
    whole.get_layout_engine().set(h_pad=0.12, w_pad=0.12)  # type: ignore[union-attr,call-arg]
    above: Any = whole
    if held_out_rows is not None:
        halves: Any = whole.subfigures(2, 1, height_ratios=(height, CURVES_HEIGHT))
        above, below = halves
        for (_, draw), ax in zip(PANELS_OF_LOSS[record.loss].values(), below.subplots(1, 2), strict=False):
            draw(record, held_out_rows, ax)
    if has_maps:  # each column has its own layout, since only one has colour bars
        columns: Any = above.subfigures(1, 2)
        first, *last = columns[0].subplots(3, 1, height_ratios=(4.6, *tall))
        maps = columns[1].subplots(2, 1)
        plot_grid(record, maps[0])
        plot_bounds(record, maps[1])
    else:
        grid = above.add_gridspec(2, 2, height_ratios=(4.6, max(tall)))
        first = above.add_subplot(grid[0, :] if record.continuous is None else grid[0, 0])
        if record.continuous is not None:
            plot_every_gamma(record, above.add_subplot(grid[0, 1]))
        last = [above.add_subplot(grid[1, 0]), above.add_subplot(grid[1, 1])]
    plot_cv_error(record, first)
    plot_features(record, last[0])
    plot_coefficients(record, last[1], data)
    return whole


def _held_out_if_any(record: Record, data: Dataset | None) -> Any:
    """Return the held-out rows of the first two panels of a loss; None without data or if folds cannot be rebuilt."""
    if (
        data is None
        or record.loss not in PANELS_OF_LOSS
        or is_from_python(record.folds)
        or record.data.has_matched_sets
    ):
        return None
    return next(iter(PANELS_OF_LOSS[record.loss].values()))[0].from_record(record, data)


def _draw_errors(ax: Axes, errors: Any) -> None:
    """Draw CV errors as colours, in % above the smallest one."""
    from matplotlib.colors import PowerNorm

    least = float(np.nanmin(errors, initial=math.inf))
    if not math.isfinite(least):
        return
    worse, words = (100.0 * (errors / least - 1.0), "% above the minimum") if least > 0.0 else (errors, "CV error")
    most = float(np.nanmax(worse))
    end = min(most, 100.0) if least > 0.0 and most > 0.0 else most or 1.0
    norm, extend = PowerNorm(0.5, 0.0, end), "max" if most > end else "neither"
    _draw_colours(ax, worse, words, extend, cmap="YlGnBu_r", norm=norm, rasterized=errors.size > MANY_BOXES)


def _n_visible(n_features: int) -> int:
    """Return the number of rows of a panel with a row for each feature."""
    return min(max(n_features, figures.BAR_ROWS), figures.MOST_FEATURES)
