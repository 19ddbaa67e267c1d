"""Stand-ins for resource managers: small programs with a state directory that really run job scripts."""
