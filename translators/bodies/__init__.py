"""Script bodies: the variables and commands of one resource manager in the words of another.

``facts`` holds the table of each dialect, ``carry`` does the work; nothing is imported before a body needs it.
"""
