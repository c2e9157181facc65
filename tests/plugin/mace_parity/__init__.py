"""A package beside MACE, as another company would write it: a constraint, a lane, a kind of proof and a distance."""
