"""Who owns which slot, the node process and the kvstrata command."""
