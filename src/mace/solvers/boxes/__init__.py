"""Branch and bound over boxes, for conditions that a lane cannot take itself."""
