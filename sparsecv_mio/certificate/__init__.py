"""Records of results, and their verification against the data by direct refits with linear algebra."""
