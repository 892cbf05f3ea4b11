"""The benchmarks and studies: `python scripts/bench` lists them, `python scripts/bench CASE [OPTION ...]` runs one.

A case is a module of this folder with a `main` and options of its own; `python scripts/bench/CASE.py` is the same.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def cases() -> dict[str, str]:
    """Return the first line of every case's docstring by its name."""
    paths = sorted(path for path in HERE.glob("[!_]*.py"))
    docstrings = {path.stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in paths}
    return {name: (text or "").split("\n")[0] for name, text in docstrings.items()}


def main() -> None:
    """List the cases, or run the one that is named."""
    known = cases()
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        print("\n".join(f"{name:20s} {text}" for name, text in known.items()))
        sys.exit(2 if len(sys.argv) > 1 else 0)
    sys.argv[:2] = [str(HERE / f"{sys.argv[1]}.py")]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
