"""One test module for each module of the package, in the same folders."""
