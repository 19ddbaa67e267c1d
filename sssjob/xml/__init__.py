"""Documents as text: reading and writing XML, its JSON twin, profiles, places and schemas."""
