"""The state of a search: the table of subproblems, what was tried, and the only writer of both."""
