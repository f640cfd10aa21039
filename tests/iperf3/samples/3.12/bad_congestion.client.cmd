iperf3 -c 127.0.0.1 -p 36187 -i 1 -t 10 --connect-timeout 5000 -C nosuch -V -f k --forceflush --debug=1
