"""Whether this is a campaign, and what it tried."""

from __future__ import annotations

import os
from collections import Counter

CAMPAIGN = "FUZZ_EXAMPLES" in os.environ  # a run by hand, with larger problems among the others
COUNTS: Counter[str] = Counter()  # what was tried, by name
