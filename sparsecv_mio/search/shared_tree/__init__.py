"""What one fit, one list or one tree on all rows decides for every fold at once."""
