"""How Longhaul reaches Temporal: connection, converter, embedded server, worker."""
