"""Tests of the comparison of backends."""
