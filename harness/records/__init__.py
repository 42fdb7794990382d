"""The records of a run, and the files that contain them."""
