"""XSD 1.0, XSD 1.1 and JSON Schema of job documents; ``python -m sssjob.derive`` writes them."""
