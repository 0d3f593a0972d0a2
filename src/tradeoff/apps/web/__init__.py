"""The web page: questions, results and studies as plain HTML that works without scripts."""
