iperf3 -c 127.0.0.1 -p 47001 --bidir -i 1 -t 1 --connect-timeout 5000 -V -f k --forceflush --debug=1
