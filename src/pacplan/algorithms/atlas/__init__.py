"""Atlas: proofs where states recur."""
