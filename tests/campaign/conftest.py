"""How long a campaign lasts, and what it counted.

`make fuzz` sets FUZZ_EXAMPLES, the examples of each test, drawn anew every time; the suite takes a few, always the
same. Counts are printed at the end and added up in build/campaign.json.
"""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest
from drawn import COUNTS
from hypothesis import HealthCheck, settings
from repository import ROOT

EXAMPLES = os.environ.get("FUZZ_EXAMPLES")

settings.register_profile("suite", max_examples=12, derandomize=True, deadline=None, database=None)
settings.register_profile(
    "campaign", max_examples=int(EXAMPLES or 1), deadline=None, print_blob=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
settings.load_profile("campaign" if EXAMPLES else "suite")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts of a campaign, and add them to those of the ones before."""
    if not COUNTS or not EXAMPLES:
        return
    place = ROOT / "build" / "campaign.json"
    place.parent.mkdir(exist_ok=True)
    known = Counter(json.loads(place.read_text())) if place.exists() else Counter()
    place.write_text(json.dumps(known + COUNTS, indent=1, sort_keys=True) + "\n")
    for name, count in sorted(COUNTS.items()):
        terminalreporter.write_line(f"{count:>12,}  {name}")
