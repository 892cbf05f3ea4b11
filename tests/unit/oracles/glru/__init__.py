"""Tests of GLRU."""
