"""Figures as methods of a record: matplotlib is loaded when one is drawn, by the axes that are given or new ones."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import pytest
from matplotlib.figure import Figure

from .examples import example


@pytest.mark.parametrize("name", ["plot_cv_error", "plot_grid", "plot_features", "plot_coefficients"])
def test_each_draws_on_the_axes_that_it_is_given(name: str) -> None:
    ax = Figure().subplots()
    assert getattr(example(), name)(ax=ax) is ax and ax.get_title(loc="left")


def test_axes_are_made_where_none_are_given() -> None:
    before = matplotlib.get_backend()
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    try:
        ax = example().plot_grid()
        assert plt.fignum_exists(ax.figure.number)
        plt.close(ax.figure)
    finally:
        matplotlib.use(before)
    assert isinstance(example().plot(), Figure)


def test_a_record_loads_no_matplotlib() -> None:
    code = "import sys, sparsecv_mio.certificate.record; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
