"""Orders of a search: which step comes next. An order has no memory; it reads the state."""
