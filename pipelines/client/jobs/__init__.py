"""Jobs, their workers, datums and logs."""
