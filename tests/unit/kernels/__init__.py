"""Every kernel against a plain numpy definition of what it computes."""
