"""The losses by name: one file a loss."""
