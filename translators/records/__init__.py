"""Readers of accounting records turn what a resource manager logged about each job into a job object.

Records are read as a stream, one JobGroup of Jobs, in bounded memory; ``base`` holds what the formats share.
"""
