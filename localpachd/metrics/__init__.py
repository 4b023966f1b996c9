"""The server in numbers, over HTTP, as Prometheus reads them. Knows no gRPC."""
