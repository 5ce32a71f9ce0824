"""Commands of Valkey clients that are answered in Python, off the data path."""
