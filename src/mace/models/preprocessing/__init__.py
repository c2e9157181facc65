"""Fitted steps before a model, carried back to the original features."""
