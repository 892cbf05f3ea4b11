"""Observers of a running search: progress reports, the trace, the checkpoint."""
