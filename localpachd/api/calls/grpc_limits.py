"""The limits of every gRPC server here: message sizes and keepalive, as pachd sets them. Serves nothing."""

MAX_MESSAGE = 20 << 20
"""Bytes of one message in either direction; payloads are split well below it."""

PENDING = 20_000
"""Calls that may wait to be taken."""

OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    # pachctl pings idle connections every 20 s; a stricter server would close them with "too_many_pings".
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 0),
    # Calls that come faster than they are taken wait; gRPC would cancel them, at random past a thousand.
    ("grpc.server.max_pending_requests", PENDING),
    ("grpc.server.max_pending_requests_hard_limit", PENDING),
    # Another server on the port must be an error, not share the port.
    ("grpc.so_reuseport", 0),
)
