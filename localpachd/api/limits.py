"""What every gRPC server here allows: message sizes and keepalive, as the real pachd sets them. Serves nothing."""

MAX_MESSAGE = 20 << 20
"""Bytes of one message in either direction; payload is cut well below it."""

OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    # pachctl pings idle connections every 20 s; a stricter server would answer "too_many_pings" and hang up.
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 0),
    # A port that another server listens on must be an error, not a port shared by both.
    ("grpc.so_reuseport", 0),
)
