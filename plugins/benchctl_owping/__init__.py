"""The owping backend: one-way delay and loss by OWAMP (RFC 4656), with owping of perfSONAR.

`backend` knows the options, `machine` reads the summary of ``-M``, `raw` the packets of ``-R``,
`clocks` says how far their figures can be trusted, `complaints` what went wrong.
"""

from benchctl_owping.backend import Owping

BACKEND = Owping()
