"""From one format to another: what a file is, what it becomes, and how two documents differ."""
