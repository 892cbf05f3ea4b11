"""The record of a search: the reported numbers, their second computation, and the models that they describe."""
