"""Good supports before anything is proved: incumbents, starts and estimates, never a certificate."""
