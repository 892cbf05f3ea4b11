"""Certified bounds on training objectives, held-out errors and CV errors, most of them without branch and bound."""
