"""What a key means that several screens have, in the words of the list of keys."""

RUN = "Run, or resume a run"
VIEW = "Plots of the run or trial"
BEFORE, AFTER = "The trial or run before", "The trial or run after"
NEXT, PREVIOUS = "The next table or text", "The table or text before"
ONLY = "Only the line, or only differences; again all"
PACKETS = "Packets of the flows that recorded them"
LISTED = "The next list: flows, trials, results, goals, remarks, limits, delays"
