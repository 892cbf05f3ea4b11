"""The state of a search: the table of subproblems (tau, gamma, fold), and the attempts to solve them."""
