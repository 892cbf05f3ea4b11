"""The state of a search: the table of subproblems (gamma, tau, fold), and the attempts to solve them."""
