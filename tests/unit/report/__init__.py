"""Tests of what is printed and drawn."""
