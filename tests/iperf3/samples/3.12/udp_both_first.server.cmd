iperf3 -s -1 -B 127.0.0.1 -p 42155 -i 0.25 -V -f k --forceflush
