"""The checker of proofs that no nearer row is robust."""
