"""Figures: written whole in each format, refused before the work where they cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsecv_mio.errors import BadInput
from sparsecv_mio.report.figures import FORMATS, check_plot, panels, save


@pytest.mark.parametrize(("suffix", "start"), list(zip(FORMATS, (b"\x89PNG", b"%PDF", b"<?xml"), strict=True)))
def test_every_format_is_written(suffix: str, start: bytes, tmp_path: Path) -> None:
    figure, axes = panels(1, 2, (4, 3), "two panels")
    assert axes.shape == (1, 2)
    save(figure, tmp_path / f"out{suffix}")
    assert (tmp_path / f"out{suffix}").read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["out.txt", "out", "nowhere/out.png"])
def test_a_place_that_will_not_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--plot"):
        check_plot(str(tmp_path / name))
