"""One call: its handler, its limits, its cancellation."""
