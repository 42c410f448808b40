"""Expansions in 1/log p, each derived on request: `derive_expansion(name, order)`."""

from __future__ import annotations

from replica.expansion.catalogue import derive_expansion, expansion_names

__all__ = ["derive_expansion", "expansion_names"]
