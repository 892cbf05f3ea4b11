"""Where the files of the repository are that tests read."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTANCES = ROOT / "instances"
DOCS = ROOT / "docs"


@cache
def syntax(source: str) -> ast.Module:
    """The syntax tree of a source, parsed once for all tests that read it."""
    return ast.parse(source)
