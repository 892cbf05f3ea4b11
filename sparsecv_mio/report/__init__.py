"""Tables, texts and figures from the numbers that a record stores."""
