"""Bracket: settings, search, and its compiled parts. docs/bracket.md has the proof."""
