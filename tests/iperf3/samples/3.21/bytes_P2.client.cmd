iperf3 -c 127.0.0.1 -p 43637 -i 0.1 -n 1572864000 -P 2 --connect-timeout 5000 --json-stream
