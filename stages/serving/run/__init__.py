"""The service as a process: its socket, its log, its start and its end."""
