"""What a search knows: the context, the interval of every cell, the fits on all rows, and the time that is left."""
