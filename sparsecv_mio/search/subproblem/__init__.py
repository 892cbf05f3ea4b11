"""One fold, or one cell (gamma, tau, fold): solved, refitted, scored on the rows held out, and bounded."""
