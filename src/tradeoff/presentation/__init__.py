"""What a person reads and what a program gets as JSON, made from typed facts.

The terminal and the page lay out what this room returns; neither computes or words anything of its own.

text        characters that are safe to show, and how much room they take
numbers     amounts with units, shares, percentages
stories     trajectories as stories
cards       one option: its stories and amounts
question    options side by side, and replies in words
answers     the answers of an interview
result      a recommendation: what, why, how certain
ranking     the best few, why not another one, weights to try
pareto      all options in a picture
groups      a choice for several people
report      a result as one HTML file
memo        a cache per problem
sentences   every fixed sentence of an interview
problems    a problem: its size, its objectives, what is worth knowing
maps, svg   where paths lead, and drawings
data        questions, options and recommendations as JSON; decision_data: rankings
"""
