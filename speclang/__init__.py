"""The language of Pachyderm specifications: globs, quantities, names, merge patches, strict JSON and its fields.

Pure functions of text and JSON values. `localpachd` and `pipelines` import it; it imports neither.
"""
