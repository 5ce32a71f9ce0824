"""Measurements of KVStrata beside its peers; see README.md. Never shipped in the wheel."""
