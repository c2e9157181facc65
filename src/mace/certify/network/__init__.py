"""The checker of proofs about linear models and networks."""
