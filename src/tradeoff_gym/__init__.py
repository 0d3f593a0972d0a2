"""Read the environments of gymnasium and mo-gymnasium."""
