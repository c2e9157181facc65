"""The checker of proofs about tree ensembles."""
