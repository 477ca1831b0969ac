"""MDP-GapE: settings, search, and its compiled parts."""
