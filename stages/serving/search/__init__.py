"""The index in memory and its searches. Knows neither HTTP nor Pachyderm."""
