"""The stores that KVStrata is measured against: their set-up, start and stop."""
