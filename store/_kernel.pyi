"""The native core of kvstrata."""

def version() -> str:
    """Version of the package this was built from."""
