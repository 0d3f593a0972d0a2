"""Read and write tradeoff's own problem files: TOML, JSON and .npz."""
