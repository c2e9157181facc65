"""Reductions: maps from a question to another question, and the way back for its answers."""
