"""Compiled code: how kernels are made and kept, what they draw from, and how their parts are chosen."""
