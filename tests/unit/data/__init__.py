"""Tests of what becomes of a file."""
