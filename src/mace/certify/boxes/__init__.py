"""The checker of proofs by boxes."""
