"""Messages to values and values to messages. Calls nothing."""
