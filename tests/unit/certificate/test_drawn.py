"""Figures as methods of a record: matplotlib is loaded when one is drawn, by the axes that are given or new ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from sparsecv_mio.errors import BadInput

from .examples import example


@pytest.mark.parametrize("name", ["plot_cv_error", "plot_grid", "plot_bounds", "plot_features", "plot_coefficients"])
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
    code = "import sys, sparsecv_mio.certificate.records; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_report_is_written_by_the_ending_of_its_file(tmp_path: Path) -> None:
    for name, start in (("a.html", "<!DOCTYPE html>"), ("a.md", "# Best-subset"), ("a.tex", "% Best-subset")):
        example().write_report(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(start)
    with pytest.raises(BadInput, match=r"must end in \.html"):
        example().write_report(tmp_path / "a.pdf")


def test_plot_of_a_figure_path_names_savefig() -> None:
    with pytest.raises(BadInput, match=r"^data: 'out/g.png' names a figure, .* plot\(\).savefig\('out/g.png'\)$"):
        example().plot("out/g.png")
