"""What UCT and BRUE share: a tree of mean returns."""
