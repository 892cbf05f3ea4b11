"""The orders and the bounding methods that read a setting of the plan, as its metadata and as the code name them."""

from __future__ import annotations

import pytest
from rich.console import Console
from zoo import random_problem

from sparsecv_mio.report.optional_parts import print_plan


def test_only_settings_with_a_reader_in_the_search_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A search by `together` relaxes nothing, and `given_pairs` reads no setting of `together`."""
    case = random_problem(7, rows=24, columns=6)
    for method, shown in (("rounds", True), ("algorithm1", False)):
        print_plan(Console(width=200), case.solve(method=method, gap=1e-4))
        printed = capsys.readouterr().out
        assert "relaxed_stride" not in printed and "orders" in printed
        assert ("cheap_nodes" in printed) is shown and ("looks_first" in printed) is shown
