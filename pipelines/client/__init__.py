"""Pachyderm from outside: the connection, the files of a repo, jobs and history, deployment, and a local server."""
