"""The checker of questions about actions, whose effects follow by structural equations."""
