"""Symbolic layer (SymPy only): states the replica free entropy and derives everything from it."""
