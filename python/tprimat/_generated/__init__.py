"""The dataclasses of the JSON that tprimat prints, a module for each schema."""

# Written by scripts/generate_dataclasses.py; do not edit.
