iperf3 -s -1 -B 127.0.0.1 -p 60827 -i 1 -V -f k --forceflush
