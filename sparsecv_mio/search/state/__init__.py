"""The state of a search: the table of subproblems (gamma, tau, fold), and the work that has been tried on them."""
