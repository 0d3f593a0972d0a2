"""Three hundred recorded interviews: every strategy, kind of problem and kind of reply."""
