"""Canopy: settings, search, and its compiled parts. docs/canopy.md has the proof."""
