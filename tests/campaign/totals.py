"""What campaigns counted, added up by commit: `python tests/campaign/totals.py [build/campaign.jsonl ..]`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

LOG = Path(__file__).resolve().parents[2] / "build" / "campaign.jsonl"


def totals(files: list[Path]) -> str:
    """Return a Markdown table of counts with a column for each commit, and one of seeds and processor time."""
    counts: dict[str, Counter[str]] = {}
    seeds: dict[str, set[int]] = {}
    cpu: Counter[str] = Counter()
    for line in (json.loads(text) for file in files for text in file.read_text().splitlines()):
        commit = line["commit"]
        counts.setdefault(commit, Counter()).update(line["counts"])
        seeds.setdefault(commit, set()).add(int(line.get("FUZZ_SEED", 0)))
        cpu[commit] += line["cpu"]
    names = sorted(set().union(*counts.values()))
    rows = [["", *counts, "all"], ["---", *["---:"] * (len(counts) + 1)]]
    for name in names:
        mine = [counts[commit][name] for commit in counts]
        rows.append([name, *(f"{count:,}" for count in [*mine, sum(mine)])])
    rows.append(["seeds", *(", ".join(map(str, sorted(seeds[commit]))) for commit in counts), ""])
    rows.append(["CPU seconds", *(f"{cpu[commit]:,.0f}" for commit in counts), f"{sum(cpu.values()):,.0f}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(totals([Path(name) for name in sys.argv[1:]] or [LOG]))
