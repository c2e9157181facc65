"""The checker of proofs about means of sigmoids."""
