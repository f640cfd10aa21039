"""Pure functions over samples and figures: folds, confidence intervals, fairness, comparison.

Nothing here reads a file, a clock or a store.
"""
