"""The kinds of decision problem: catalogues of items, Markov decision processes, and point sets."""
