iperf3 -c 127.0.0.1 -p 47475 -i 1 -t 1 --connect-timeout 5000 -6 -V -f k --forceflush --debug=1
