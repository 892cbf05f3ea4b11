"""Figures of the models of draws: inclusion frequencies of features, and percentile intervals of coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparsecv_mio.certificate.inference_parts import Bootstrap, FeatureCount
from sparsecv_mio.certificate.records import Record
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report import figures
from sparsecv_mio.report.figures import MOST_FEATURES, name_rows, omission_note

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_inclusion(record: Record, ax: Axes | None = None) -> Axes:
    """Draw the inclusion frequencies of the bootstrap, or else the frequencies of stability selection.

    Parameters
    ----------
    record : Record
        Record with `bootstrap` or `stability_selection`.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes. Bars are binomial intervals of the frequencies of the bootstrap; a line marks the threshold of
        stability selection.
    """
    draws = record.bootstrap or record.stability_selection
    if draws is None:
        raise BadInput("panel inclusion: requires a record of `solve --bootstrap` or `solve --stability-selection`")
    rows, at = draws.features[:MOST_FEATURES], np.arange(min(len(draws.features), MOST_FEATURES))
    ax = figures.prepare_axes(ax, (7.0, 1.4 + 0.22 * max(len(rows), 4)))
    shares = np.array([one.frequency for one in rows])
    inside = np.array([one.feature in record.coefficients for one in rows], dtype=bool)
    kinds = (inside, figures.LOWER, "in the full-data model"), (~inside, figures.FAINT, "not in the full-data model")
    for mine, colour, label in kinds:
        ax.barh(at[mine], shares[mine], color=colour, height=0.7, label=label if mine.any() else None)
    if isinstance(draws, Bootstrap):
        ends = np.array([(one.lower, one.upper) for one in draws.features[:MOST_FEATURES]]).reshape(-1, 2).T
        ax.hlines(at, *ends, color=figures.UPPER, linewidth=1.2, label=f"{100.0 * draws.level:g}% interval")
        kind = "bootstrap draws"
    else:
        ax.axvline(draws.threshold, color=figures.INK, linewidth=0.8, linestyle=(0, (4, 3)), label="threshold")
        kind = "halves"
    _finish(ax, record, draws.features, f"share of {kind} that choose each feature")
    ax.set(xlim=(0.0, 1.02), xlabel=f"share of {len(draws.chosen):,} {kind}")
    figures.draw_outer_legend(ax)
    return ax


def _finish(ax: Axes, record: Record, features: Sequence[FeatureCount], title: str) -> None:
    """Name the rows, and write the title with the number of omitted features."""
    names = [one.feature for one in features]
    name_rows(ax, names[:MOST_FEATURES], record.data.names)
    figures.write_title(ax, f"{title}{omission_note(names[:MOST_FEATURES], names)}")


def plot_intervals(record: Record, ax: Axes | None = None) -> Axes:
    """Draw the percentile intervals of the coefficients over bootstrap draws, each relative to its larger end.

    Parameters
    ----------
    record : Record
        Record with `bootstrap`.
    ax : matplotlib Axes, optional
        Axes to draw on; those of a new pyplot figure by default.

    Returns
    -------
    matplotlib Axes
        The axes. Dots are the coefficients of the full-data model; an interval that reaches 0 has a share of zeros
        next to it.
    """
    found = record.bootstrap
    if found is None:
        raise BadInput("panel intervals: requires a record of `solve --bootstrap`")
    rows = found.features[:MOST_FEATURES]
    ax = figures.prepare_axes(ax, (7.0, 1.4 + 0.22 * max(len(rows), 4)))
    ax.axvline(0.0, color=figures.FAINT, linewidth=0.8)
    for at, one in enumerate(rows):
        own = record.coefficients.get(one.feature, 0.0)
        scale = max(abs(one.coefficient_low), abs(one.coefficient_high), abs(own)) or 1.0
        ax.hlines(at, one.coefficient_low / scale, one.coefficient_high / scale, color=figures.LOWER, linewidth=3.0)
        label = None if at else "coefficient of the full-data model"
        ax.plot([own / scale], [at], "o", color=figures.UPPER, markersize=5.0, label=label)
        ax.annotate(f"{100.0 * one.zeros:.0f}% zeros", (1.05, at), va="center", fontsize=7.0, annotation_clip=False)
    ax.set(xlim=(-1.03, 1.35), xlabel="coefficient, relative to the largest absolute value in its row")
    _finish(ax, record, found.features, f"{100.0 * found.level:g}% percentiles over bootstrap draws")
    figures.draw_outer_legend(ax)
    return ax
