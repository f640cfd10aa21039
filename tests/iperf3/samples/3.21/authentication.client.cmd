iperf3 -c 127.0.0.1 -p 37537 -i 1 -t 1 --connect-timeout 5000 --json-stream
