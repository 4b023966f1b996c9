"""From the deployed pipelines to the installed specifications, and back: compared, priced, sent at once."""
