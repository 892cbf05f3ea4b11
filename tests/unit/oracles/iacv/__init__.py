"""Tests of IACV."""
