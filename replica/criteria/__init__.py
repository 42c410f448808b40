"""Retrieval criteria, one file each; `replica.catalogue.CRITERIA` lists them by name."""
