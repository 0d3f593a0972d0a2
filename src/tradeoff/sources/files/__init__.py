"""Problem files of our own: TOML, JSON and .npz."""
