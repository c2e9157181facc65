"""Readers of tree ensembles."""
