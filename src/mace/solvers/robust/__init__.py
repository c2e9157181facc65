"""Answers that perturbations of the row cannot undo."""
