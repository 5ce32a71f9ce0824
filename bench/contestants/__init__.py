"""Clients under measurement, each a program of its own that obeys `loop.serve`."""
