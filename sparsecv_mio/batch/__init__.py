"""Batches of runs: a plan becomes tasks, tasks become records in a folder, the folder a table."""
