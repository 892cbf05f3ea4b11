"""Figures of bounds against tau."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.data.folds import make_folds
from sparsecv_mio.data.standard import standardize
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report.bounds_plots import draw_bounds, plot_bounds
from sparsecv_mio.report.figures import panels

from .printing import data


@pytest.mark.parametrize("which", ["safe", "as-printed"])
def test_a_panel_shows_the_bounds_of_its_gamma(which: str, tmp_path: Path) -> None:
    ask = standardize(data()), make_folds("5", data()), (0.1, 1.0), (3, 1, 2), which
    table = compute_bounds(*ask, threads=1)  # type: ignore[call-overload]
    _, axes = panels(1, 1, (4, 3))
    draw_bounds(axes[0, 0], table, 1)
    assert axes[0, 0].get_title(loc="left") == "gamma = 1"
    assert [bar.get_x() + bar.get_width() / 2.0 for bar in axes[0, 0].patches] == pytest.approx([3, 1, 2])
    assert all(np.isfinite(bar.get_y()) and bar.get_height() >= 0.0 for bar in axes[0, 0].patches)
    plot_bounds(table, str(tmp_path / "b.svg"))
    assert (tmp_path / "b.svg").stat().st_size > 5000
    with pytest.raises(BadInput, match="--plot"):
        plot_bounds(table, str(tmp_path / "b.jpeg"))
