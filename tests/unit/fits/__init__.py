"""Tests of fits on all rows."""
