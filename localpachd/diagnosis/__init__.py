"""The state of this process and its program as text, for reports of bugs; knows no commits, pipelines or gRPC."""
