"""Orders of a search: rules that choose the next step from the present state alone."""
