"""Tests of the record and its checker."""
