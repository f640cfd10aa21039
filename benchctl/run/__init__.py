"""What a run is, as types: its plan, its record, its states. Pure.

Every type is a frozen Struct. `codec` converts each to and from JSON by its annotations. Names are
those of the keys and columns in the store.
"""
