"""One module per bar: what is measured, against whom, and the limit it must keep."""
