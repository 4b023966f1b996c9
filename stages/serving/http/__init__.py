"""Routes, bodies and replies: HTTP to a question and an answer to HTTP. Only this room knows FastAPI."""
