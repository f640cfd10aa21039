"""Pure functions over samples and figures: folds, intervals of confidence, fairness, change.

Nothing here reads a file, a clock or a store.
"""
