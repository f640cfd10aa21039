"""The signals that a runner takes: SIGINT and SIGTERM stop the run, SIGUSR1 skips the trial.

Whoever starts a runner holds them back, and the runner lets them through once it listens: one that
comes while Python starts is not lost.
"""

import signal

STOPPING = (signal.SIGINT, signal.SIGTERM)
SIGNALS = (*STOPPING, signal.SIGUSR1)
