"""Batches of runs: a plan describes many runs, each run is a task, and a table collects the outcomes of all tasks.

This folder also has the code that compares solvers of mixed-integer optimisation (MIO) and draws figures of many runs.
The rest of `sparsecv_mio` does not import this folder (:mod:`sparsecv_mio.satellites`).
"""

COMMANDS = {
    "batch": "run_commands",
    "collect": "run_commands",
    "table": "table_commands",
    "plot": "table_commands",  # instead of that of the core, which draws single records
    "compare": "comparison_command",
}
