"""The screens: watch and control a run, replay it, compare runs. They read the store.

`model` computes what is shown, and `draw` turns it into text; both work, and are tested, without
Textual. Widgets and screens only arrange it. The run is a separate process: quitting detaches.
"""
