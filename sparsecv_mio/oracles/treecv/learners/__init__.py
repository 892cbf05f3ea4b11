"""Incremental learners for TreeCV."""
