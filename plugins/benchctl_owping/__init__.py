"""The owping backend: one-way delay and loss by OWAMP (RFC 4656), with owping of perfSONAR.

`backend` has the options, `machine` reads the summary of ``-M``, `raw` the packets of ``-R``, and
`complaints` maps error messages to failures.
"""

from benchctl_owping.backend import Owping

BACKEND = Owping()
