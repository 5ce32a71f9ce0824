"""Inference engines' blocks to keys. Nothing imports it."""
