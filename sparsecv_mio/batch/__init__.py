"""Batches of runs: a plan becomes tasks, tasks become records in a folder, and the folder becomes a table."""
