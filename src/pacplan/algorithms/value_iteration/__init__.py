"""Certain answers where every probability is known."""
