"""Identity of registrations: within a process (sameness), and for graphs that another one has kept (fingerprints)."""
