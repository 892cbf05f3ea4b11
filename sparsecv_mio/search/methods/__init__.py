"""The methods of a search, a file each: every one is a strategy with `begin`, `step` and `finished`."""
