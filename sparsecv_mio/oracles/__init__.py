"""Oracles from other papers (GLRU, IACV and TreeCV), as commands of their own and as accelerators of the search."""
