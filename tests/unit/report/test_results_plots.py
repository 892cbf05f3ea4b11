"""Figures of many runs: what is drawn is what the numbers say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsecv_mio.report.results_plots import boxes, critical_difference, lines, performance_ratios, profiles

TABLE = pd.DataFrame({"a": [1.0, 2.0, 3.0, 0.0], "b": [2.0, 1.0, np.nan, 5.0]}, index=list("wxyz"))
RUNS = pd.DataFrame(
    {"snr": [0.05, 0.05, 6.0, 6.0], "lower": [1.0, 3.0, 4.0, 4.0], "upper": [5.0, 6.0, 7.0, 2.0]},
    index=[3, 5, 7, 9],
)
BY = pd.Series(["ours", "ours", "ours", "lasso"], index=RUNS.index)


def test_ratios_to_the_best() -> None:
    found = performance_ratios(TABLE)
    assert found["a"].tolist() == [1.0, 2.0, 1.0, np.inf] and found["b"].tolist() == [2.0, 1.0, np.inf, 1.0]
    assert performance_ratios(TABLE, larger=True)["a"].tolist() == [2.0, 1.0, 1.0, np.inf]


def test_profiles_end_at_the_share_that_was_solved() -> None:
    figure = profiles({"one": TABLE, "two": TABLE[["b"]]}, "seconds")
    steps = {line.get_label(): line.get_ydata() for line in figure.axes[0].get_lines()}
    assert steps["a"][-1] == 0.75 and steps["a"].tolist()[1:3] == [0.25, 0.5]
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one (4 problems)", "two (4 problems)"]


def test_boxes_have_the_medians() -> None:
    figure = boxes({"": RUNS}, "upper", BY)
    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ours", "lasso"]
    assert 6.0 in [float(np.mean(line.get_xdata())) for line in ax.get_lines() if len(line.get_xdata())]


def test_lines_have_the_means() -> None:
    figure = lines({"": RUNS}, ["lower", "upper"], BY, "snr")
    ax = figure.axes[0]
    found = {text: container for container, text in zip(*ax.get_legend_handles_labels(), strict=True)}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(found)
    assert list(found) == ["ours lower", "lasso lower", "ours upper", "lasso upper"]
    assert found["ours lower"].lines[0].get_ydata().tolist() == [2.0, 4.0]
    assert ax.get_xscale() == "log" and len(lines({"": RUNS}, ["lower"], BY, "snr").axes) == 1


@pytest.mark.parametrize("count", [3, 9])
def test_critical_difference_names_every_method_once(count: int) -> None:
    mean = {f"method {k}": 1.0 + 0.7 * k for k in range(count)}
    figure = critical_difference(mean, [list(mean)[:2]], 1.5, "title")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert all(sum(name in text for text in texts) == 1 for name in mean)
    assert any("critical difference 1.50" in text for text in texts)
