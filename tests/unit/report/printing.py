"""Text printed at a width, and the numbers in it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import numpy as np
from rich.console import Console

from sparsecv_mio.data.dataset import Dataset

WIDTHS = (30, 40, 60, 80, 200)
NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?")  # a list of numbers may be folded


def data() -> Dataset:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    names = [*("a", "b", "c", "d"), "a_name_that_is_much_longer_than_the_column_it_stands_in"]
    return Dataset.from_arrays(X, 1e4 * (X[:, 0] - X[:, 4] + 0.3 * rng.normal(size=40)), names)


def printed(printer: Callable[[Console], None], width: int) -> str:
    text = io.StringIO()
    printer(Console(file=text, width=width, highlight=False, markup=False, emoji=False))
    return text.getvalue()


def numbers(text: str) -> list[str]:
    """Numbers of a text whose lines were folded at blanks: what a wrap must not change."""
    return sorted(NUMBER.findall(text))


def check(printer: Callable[[Console], None]) -> None:
    wide = numbers(printed(printer, 300))
    for width in WIDTHS:
        text = printed(printer, width)
        assert "…" not in text and numbers(text) == wide, width
        assert max(map(len, text.splitlines())) <= width
