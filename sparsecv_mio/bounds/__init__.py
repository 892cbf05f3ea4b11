"""Certified bounds without branching: relaxations, screening, spreads, and the CV error they bracket."""
