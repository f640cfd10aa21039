iperf3 -s -1 -B 127.0.0.1 -p 36565 -i 0.5 -V -f k --forceflush
