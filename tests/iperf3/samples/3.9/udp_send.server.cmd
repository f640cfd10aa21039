iperf3 -s -1 -B 127.0.0.1 -p 53179 -i 1 -V -f k --forceflush
