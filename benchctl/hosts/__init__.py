"""Where commands run: this machine, and hosts of a lab.

A host is data: a name, an address, and the words that go before a command so that it runs there
(`host`). `spawn` starts commands, holds them at a gate until a common start, and sees to it that
none outlives the runner. `facts` describes a host.
"""
