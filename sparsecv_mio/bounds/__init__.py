"""Certified bounds on training objectives, held-out errors and CV errors, mostly without branching."""
