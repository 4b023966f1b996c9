"""The Parquet tables between the stages, as values and as files. Knows no stage, no model and no Pachyderm."""
