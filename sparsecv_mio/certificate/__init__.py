"""Records of what was found, and their check against the data by plain linear algebra."""
