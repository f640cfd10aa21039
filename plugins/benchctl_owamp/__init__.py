"""OWAMP, TWAMP and STAMP as a backend of benchctl, and as a command of its own.

`simpleowamp` (the sub-package) is the tool and does not depend on benchctl.
"""
