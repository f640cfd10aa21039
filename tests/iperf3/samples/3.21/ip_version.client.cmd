iperf3 -c 127.0.0.1 -p 51453 -i 1 -t 1 --connect-timeout 5000 -6 --json-stream
