"""What a run is, as types: planned, recorded, and in which state; pure.

Every type is a frozen dataclass, and `codec` turns each into JSON and back by its annotations.
Names are those of the keys and columns in the store.
"""
