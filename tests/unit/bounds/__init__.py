"""Tests of the bounds without branching."""
