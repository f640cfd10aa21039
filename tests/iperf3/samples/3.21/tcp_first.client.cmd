iperf3 -c 127.0.0.1 -p 59513 -i 0.25 -t 1 -O 1 -b 20000000 --connect-timeout 5000 --json-stream
