"""Figures: written whole in each format, refused before the work where they cannot be."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from sparsecv_mio.certificate.predicting import FIGURE_SUFFIXES
from sparsecv_mio.errors import BadInput
from sparsecv_mio.report.figures import (
    check_plot,
    draw_outer_legend,
    panels,
    places,
    prepare_axes,
    save,
    shorten_names,
)


@pytest.mark.parametrize("name", ["out.txt", "out", "nowhere/out.png"])
def test_a_place_that_will_not_do(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--out"):
        check_plot(str(tmp_path / name), "--out")


def test_names_stay_apart_when_they_are_shortened() -> None:
    names = ["x", *(f"the same long beginning {j} and the same long end" for j in range(12))]
    cut = shorten_names(names)
    assert len(set(cut)) == len(names) and max(map(len, cut)) <= 26 and cut[0] == "x" and cut[-1].endswith("(13)")


def test_a_legend_is_below_the_axes() -> None:
    figure, axes = panels(1, 1, (4, 3))
    draw_outer_legend(axes[0, 0])
    assert axes[0, 0].get_legend() is None
    axes[0, 0].plot([1, 2], label="a line")
    draw_outer_legend(axes[0, 0])
    figure.draw_without_rendering()
    assert axes[0, 0].get_legend().get_window_extent().y1 < axes[0, 0].get_window_extent().y0


def test_places_have_as_many_labels_as_there_is_room_for() -> None:
    _, axes = panels(1, 1, (4, 3))
    places(axes[0, 0], "x", [str(k) for k in range(50)])
    assert axes[0, 0].get_xticks().tolist() == [*range(0, 46, 4), 49] and axes[0, 0].get_xlim() == (-0.5, 49.5)


@pytest.mark.parametrize(("suffix", "start"), list(zip(FIGURE_SUFFIXES, (b"\x89PNG", b"%PDF", b"<?xml"), strict=True)))
def test_names_that_the_font_lacks_are_one_warning_and_stay_text_in_svg(
    suffix: str, start: bytes, tmp_path: Path
) -> None:
    figure, axes = panels(1, 1, (3.0, 2.0))
    axes[0, 0].set(xlabel="身長", ylabel="体重")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save(figure, tmp_path / f"f{suffix}")
    said = [str(warning.message) for warning in caught]
    assert (tmp_path / f"f{suffix}").read_bytes().startswith(start)
    if suffix == ".svg":
        assert said == [] and "身長" in (tmp_path / "f.svg").read_text(encoding="utf-8")
    elif said:  # where the font of this machine lacks them
        assert len(said) == 1 and said[0].startswith("the font of figures lacks the characters ") and "身" in said[0]


def test_axes_that_are_none_are_refused_by_their_type() -> None:
    with pytest.raises(BadInput, match="^ax: a dict is not matplotlib Axes; give Axes, or pass data as data="):
        prepare_axes({})  # type: ignore[arg-type]
