"""Where commands run: this machine, and hosts of a lab.

A host is data: a name, an address, and the words that go before a command to run it there. `spawn`
starts commands, holds them at a gate until a common start, and ensures that none outlives the
runner. `facts` describes a host.
"""
