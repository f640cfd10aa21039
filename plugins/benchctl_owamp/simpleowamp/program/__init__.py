"""The programs: client, servers, their control connections, options and output."""
