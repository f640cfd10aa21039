"""The programs: client, server, their control connections, options and output."""
