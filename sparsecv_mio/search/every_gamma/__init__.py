"""Searches over every gamma of an interval, and the descent over gamma and tau: both call the one search."""
