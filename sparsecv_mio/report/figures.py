"""What every figure shares: its panels, the formats it is written in, and a file that is complete or untouched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecv_mio.errors import BadInput
from sparsecv_mio.files import check_writable, replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".pdf", ".svg")
DPI = 150


def check_plot(path: str) -> None:
    """Raise :class:`BadInput` for a plot file that could not be written, before any work."""
    if Path(path).suffix.lower() not in FORMATS:
        raise BadInput(f"--plot: {path} must end in {', '.join(FORMATS)}")
    check_writable(path, "--plot")


def panels(rows: int, columns: int, size: tuple[float, float], title: str = "") -> tuple[Figure, Any]:
    """Make a figure of `rows` times `columns` panels.

    Parameters
    ----------
    rows, columns : int
        Number of panels.
    size : (float, float)
        Width and height of the figure in inches.
    title : str
        Stands above all panels.

    Returns
    -------
    figure : matplotlib Figure
        Independent of pyplot: nothing to close, and no display is needed.
    axes : (rows, columns) array of matplotlib Axes
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    if title:
        figure.suptitle(title)
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure, PNG, PDF or SVG by the ending of `path`."""
    with replacing(path, "figure") as temporary:
        figure.savefig(temporary, dpi=DPI)
