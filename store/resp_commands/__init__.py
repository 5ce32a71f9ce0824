"""Every command of Valkey clients that a node knows, as data; nothing runs here."""
