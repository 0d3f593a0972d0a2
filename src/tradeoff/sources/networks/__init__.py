"""Networks of streets, tracks or cables."""
