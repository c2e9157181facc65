"""Readers of models that are made of other models."""
