"""Pictures at URLs and in buckets: named, fetched, and put into the library some at a time."""
