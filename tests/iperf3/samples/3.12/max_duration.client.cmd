iperf3 -c 127.0.0.1 -p 60543 -i 1 -t 5 --connect-timeout 5000 -V -f k --forceflush --debug=1
