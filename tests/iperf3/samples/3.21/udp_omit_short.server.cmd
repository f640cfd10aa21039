iperf3 -s -1 -B 127.0.0.1 -p 58323 -i 2 -V -f k --forceflush
