"""The screens: watch a run, steer it, look back, compare. A reader of the store.

What is shown is computed without Textual and tested without it: `runview` folds a run's events,
`series` and `traces` keep the lines of a trial within bounds, `plot` draws them as text, `feed`
brings all of it up to date from the store. Widgets and screens only place it. The run goes on in
its own process: quitting detaches.
"""
