iperf3 -c 127.0.0.1 -p 41371 -i 1 -n 10485760 --connect-timeout 5000 -V -f k --forceflush --debug=1
