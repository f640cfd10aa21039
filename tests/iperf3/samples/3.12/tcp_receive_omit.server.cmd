iperf3 -s -1 -B 127.0.0.1 -p 50217 -i 1 -V -f k --forceflush --debug=1
