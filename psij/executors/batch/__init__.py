"""Each executor of this package hands jobs to one resource manager by running that manager's commands."""
