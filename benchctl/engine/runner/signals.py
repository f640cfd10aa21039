"""The signals that a runner takes: SIGINT and SIGTERM stop the run, SIGUSR1 skips the trial.

The parent blocks them, and the runner unblocks them once it handles them. So a signal during the
start of Python is not lost.
"""

import signal

STOPPING = (signal.SIGINT, signal.SIGTERM)
SIGNALS = (*STOPPING, signal.SIGUSR1)
