"""What planners share: the base class, horizons, certificates in words, and the making of plans."""
