"""Translators of accounting records: what resource managers wrote, record by record, to job objects.

Records are read as a stream, one JobGroup of Jobs, in bounded memory; ``base`` holds what the formats share.
"""
