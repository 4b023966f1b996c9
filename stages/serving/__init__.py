"""The service: the index in memory, its searches, and the answers over HTTP. No other stage imports it."""
