"""Tables, texts and figures of answers; no numbers are computed here that the record does not hold."""
