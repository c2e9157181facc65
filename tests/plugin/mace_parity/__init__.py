"""A package beside MACE, as another company would write it: constraints, a search around a lane, a lane, kinds of proof and a distance."""
