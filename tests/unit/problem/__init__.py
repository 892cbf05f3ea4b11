"""Tests of one fold's problem."""
