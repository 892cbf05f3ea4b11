"""The same mixed-integer problems through several backends."""
