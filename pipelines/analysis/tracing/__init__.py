"""An answer followed back to the files, datums, jobs, model and commits that it came from."""
