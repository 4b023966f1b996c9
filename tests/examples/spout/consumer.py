"""Stands in for a queue that sends messages of one and of two kilobytes; each pair becomes a commit."""

import hashlib
import os
import time

import python_pachyderm

client = python_pachyderm.Client()
project = os.environ["PPS_PROJECT_NAME"]
for number in range(2):
    with client.commit("spout", "master", project_name=project) as commit:
        for size in (1, 2):
            message = str(number).encode() * 1000 * size
            client.put_file_bytes(commit, f"/{hashlib.sha256(message).hexdigest()}.txt", message)
    print("committed", commit.id, flush=True)
while True:
    time.sleep(3600)
