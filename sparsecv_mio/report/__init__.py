"""Tables, texts and figures of records, formatted from the numbers that a record stores."""
