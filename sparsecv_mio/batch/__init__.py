"""Batches of runs, a satellite: a plan becomes tasks, tasks become records in a folder, and the folder becomes a table.

The satellite also compares backends and draws tables of runs.
"""

COMMANDS = {
    "batch": "commands",
    "collect": "commands",
    "table": "table_commands",
    "plot": "table_commands",  # instead of that of the core, which draws single records
    "compare": "comparison_command",
}
