"""The record of a search: the reported numbers, their independent check, and the reported models."""
