"""The object and nothing else: vocabulary, containers, properties, inheritance, lexical forms, units, states."""
