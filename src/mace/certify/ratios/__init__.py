"""The checker of proofs about probabilities that are divided by their sums."""
