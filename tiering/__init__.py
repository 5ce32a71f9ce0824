"""Where bytes rest on one node: knows nothing of clients or slots."""
