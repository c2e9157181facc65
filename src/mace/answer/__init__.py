"""From bounds to answers: the driver of the lanes, and what is derived from many questions."""
