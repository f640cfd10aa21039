iperf3 -s -1 -B 127.0.0.1 -p 43637 -i 0.1 -V -f k --forceflush --debug=1
