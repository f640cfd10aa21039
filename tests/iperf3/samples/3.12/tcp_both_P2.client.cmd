iperf3 -c 127.0.0.1 -p 37737 --bidir -i 0.5 -t 1 -P 2 --connect-timeout 5000 -V -f k --forceflush --debug=1
