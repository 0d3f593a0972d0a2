"""The kinds of decision problem: a catalogue of items, and a Markov decision process."""
