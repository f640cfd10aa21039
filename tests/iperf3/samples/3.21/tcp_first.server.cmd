iperf3 -s -1 -B 127.0.0.1 -p 59513 -i 0.25 -V -f k --forceflush --debug=1
