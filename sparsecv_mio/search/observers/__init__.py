"""Who looks on while a search runs: progress reports, the trace, the checkpoint."""
