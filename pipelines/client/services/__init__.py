"""The services that answer over HTTP: found, protected and asked."""
