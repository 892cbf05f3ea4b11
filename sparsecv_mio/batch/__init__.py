"""Batches of runs: a plan describes many runs, each run is a task, and a table collects the outcomes of all tasks.

This folder also has the code that compares solvers of mixed-integer optimisation (MIO) and draws figures of many runs.
No other module of `sparsecv_mio` imports this folder; :mod:`sparsecv_mio.satellites` loads a module of it at first use.
"""

COMMANDS = {
    "batch": "run_commands",
    "collect": "run_commands",
    "table": "table_commands",
    "plot": "table_commands",  # instead of that of the core, which draws single records
    "compare": "comparison_command",
}
