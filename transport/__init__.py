"""Capsules between hosts: knows nothing of what keys mean, of tiers or of slots."""
