"""Anytime: the best move in little time."""
