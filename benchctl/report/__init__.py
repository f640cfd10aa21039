"""Tables, documents and exports of a run, and the progress of one that goes on.

`document` reads a run from the store as one JSON-like document; every format but the stream of
events is a pure function of that document.
"""
