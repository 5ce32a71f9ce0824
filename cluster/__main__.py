"""`python -m kvstrata`, and `python -m kvstrata.cluster`: the `kvstrata` command."""

from kvstrata.cluster.cli import main

main()
