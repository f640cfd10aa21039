"""Reads files that tools wrote before: each kind of file becomes trials of a run.

A backend reads the files of its own tool (`benchctl.api.Backend.recorded`), with the parser of its
own: so a new backend brings its import. Files that are no backend's have a plugin of their own
(`benchctl.api.Importer`). Both get the bytes of a file and return its measurements, or None if it
is not theirs. Everything else is the same for all: which kinds there are (`kinds`), reading the
file within bounds (`files`), the axes (`axes`), and the run (`run`), which is built beside the
store and then copied into it as a whole.
"""
