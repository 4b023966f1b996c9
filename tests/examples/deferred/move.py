"""move.py REPO BRANCH OTHER: moves a branch to the head of another one, from within a pipeline."""

import os
import sys

import python_pachyderm

repo, branch, other = sys.argv[1:]
project = os.environ["PPS_PROJECT_NAME"]
client = python_pachyderm.Client.new_in_cluster()
head = client.inspect_branch(repo, other, project_name=project).head
client.create_branch(repo, branch, head_commit=head, project_name=project)
