"""The gRPC room: decode a request, make one call, encode the answer. The only place that knows protobuf."""
