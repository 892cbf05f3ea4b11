"""Runs command lines of the tree on PYTHONPATH in one warm process: a JSON request a line in, a JSON answer a line out.

Started by `same_records.py` as `python _record_worker.py TREE LOG`; what the commands print goes to LOG.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import Any

TREE, LOG = Path(sys.argv[1]).resolve(), sys.argv[2]
answers = os.fdopen(os.dup(1), "w")  # solvers print to the standard streams by themselves
log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
os.dup2(log, 1)
os.dup2(log, 2)

from sparsecv_mio import __file__ as found  # noqa: E402
from sparsecv_mio import declared_options  # noqa: E402
from sparsecv_mio.cli import run  # noqa: E402

if TREE not in Path(found).resolve().parents:
    sys.exit(f"sparsecv_mio comes from {found}, not from {TREE}")


HAS_DEFAULT_LIMIT = hasattr(declared_options, "COMMAND_SECONDS")  # a tree whose `solve` ends after some minutes


def without_limit(words: list[str]) -> list[str]:
    """Return a command that has no time limit, whatever the default of its tree."""
    is_unlimited = HAS_DEFAULT_LIMIT and words[0] == "solve" and "--time-limit" not in words
    return [*words, "--time-limit", "none"] if is_unlimited else words


def carried_out(commands: list[list[str]]) -> tuple[list[int | str], float, float]:
    """Exit codes of the commands, wall-clock and CPU seconds; an exception that escapes stands in place of a code."""
    codes: list[int | str] = []
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for words in commands:
        try:
            codes.append(run(without_limit(words)))
        except Exception as error:
            codes.append(f"{type(error).__name__}: {error}")
            traceback.print_exc()
    return codes, time.perf_counter() - wall, time.process_time() - cpu


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out one request in an empty folder."""
    os.truncate(LOG, 0)
    shutil.rmtree(request["scratch"], ignore_errors=True)
    Path(request["scratch"]).mkdir()
    codes, wall, cpu = carried_out(request["commands"])
    sys.stdout.flush()
    sys.stderr.flush()
    return {"codes": codes, "wall": wall, "cpu": cpu}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
