"""Readers of linear models and networks."""
