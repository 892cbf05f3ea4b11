"""Numbers of one kind have one format: on the screen, in reports, in tables, in what records say of themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sparsecv_mio.certificate.read_back import read_record
from sparsecv_mio.cli import run
from sparsecv_mio.digits import format_interval, format_lower, format_number, format_upper, format_with_zeros


@pytest.mark.parametrize("digits", [2, 3, 6, 9])
def test_no_digit_of_the_whole_part_is_lost_and_at_least_so_many_are_written(digits: int) -> None:
    rng = np.random.default_rng(digits)
    for value in rng.choice([-1.0, 1.0], 2000) * 10.0 ** rng.uniform(-12, 15, 2000):
        for text in (format_number(value, digits), format_with_zeros(value, digits)):
            allowed = 0.5000001 * max(10.0 ** (1 - digits) * abs(value), 0.0)
            assert abs(float(text) - value) <= (max(allowed, 0.5) if abs(value) < 1e12 else allowed)
            assert "e+" not in text or abs(value) >= 1e12


def test_numbers_at_the_edges() -> None:
    assert [format_number(999999.7), format_number(999999.4), format_with_zeros(999999.7, 6)] == [
        "1000000",
        "999999",
        "1000000",
    ]
    assert [format_number(0.0), format_number(-0.5), format_number(math.nan), format_number(-math.inf)] == [
        "0",
        "-0.5",
        "?",
        "?",
    ]
    assert [format_with_zeros(math.inf, 6), format_with_zeros(1.5, 6), format_with_zeros(2.5e12, 6)] == [
        "?",
        "1.50000",
        "2.50000e+12",
    ]
    assert format_interval(120245.4, 26227614.9) == "[120245, 26227615]"


@pytest.mark.parametrize("digits", [4, 6])
@pytest.mark.parametrize("form", [format_number, format_with_zeros])
def test_printed_bounds_are_outside_of_the_exact_ones(digits: int, form: Callable[[float, int], str]) -> None:
    rng = np.random.default_rng(digits)
    for value in [0.1, 83.76591443, 26227614.2, 999999.7, *(10.0 ** rng.uniform(-12, 15, 2000)).tolist()]:
        for bound in (value, -value):
            low, high = float(format_lower(bound, digits, form)), float(format_upper(bound, digits, form))
            assert low <= bound <= high and high - low <= 1.000001 * 10.0 ** (1 - digits) * value
    assert format_interval(0.53524607, 0.53524607) == "[0.535246, 0.535247]" and format_upper(0.1) == "0.1"


def test_one_answer_has_one_format_of_its_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(24, 3))
    y = 180000.0 + X @ [40000.0, -25000.0, 0.0] + 18000.0 * rng.normal(size=24)
    file, stored, page = tmp_path / "price.csv", tmp_path / "price.json", tmp_path / "price.html"
    np.savetxt(file, np.column_stack([X, y]), delimiter=",", header="a,b,c,price", comments="")
    assert run(["solve", str(file), "-t", "price", "--one-se", "--json", str(stored)]) == 0
    screen = capsys.readouterr().out
    record = read_record(stored)
    assert record.cv_error > 1e8
    assert run(["report", str(stored), "-o", str(page)]) == 0
    text = re.sub(r"(?s)<(svg|style|script).*?</\1>|<[^>]*>", " ", page.read_text(encoding="utf-8"))
    for said in (screen, text, repr(record), record.summary()):
        assert f"{record.cv_error:.0f}" in said
        assert not re.search(r"\de\+\d", said)
