"""Orders of a search: rules that choose the next step (unit of work) from the present state of the search alone."""
