"""Read networks of streets, tracks or cables."""
