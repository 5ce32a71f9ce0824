"""Fixtures for the tests of programs that use kvstrata."""
