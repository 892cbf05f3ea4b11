"""Tests of GLRU, IACV and TreeCV."""
