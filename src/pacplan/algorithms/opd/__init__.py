"""OPD (Hren, Munos 2008): optimistic planning if nothing is random, with certain answers."""
