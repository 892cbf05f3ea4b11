"""Orders of a search: rules that choose its next step from its present state alone."""
