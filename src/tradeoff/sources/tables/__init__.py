"""Tables of items and of logged steps."""
