"""Letters: an explanation in plain words for the person whom it is about."""
