"""Certified numbers (python-flint balls) and fast floats for what `replica` derives."""
