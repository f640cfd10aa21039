iperf3 -s -1 -B 127.0.0.1 -p 42453 -i 2 -V -f k --forceflush
