"""Compiled code: how kernels are made and kept, what they draw from, and how they ask questions."""
