"""Tests of the Pyomo models."""
