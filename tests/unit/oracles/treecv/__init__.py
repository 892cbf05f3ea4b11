"""Tests of TreeCV."""
