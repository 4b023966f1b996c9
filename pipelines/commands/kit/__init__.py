"""What commands are made of: options, connections, progress, and lines on the terminal. Knows no command."""
