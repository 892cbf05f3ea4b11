"""Records of results, and their verification against the data by plain linear algebra."""
