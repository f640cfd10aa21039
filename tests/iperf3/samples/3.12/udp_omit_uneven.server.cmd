iperf3 -s -1 -B 127.0.0.1 -p 56295 -i 0.3 -V -f k --forceflush
