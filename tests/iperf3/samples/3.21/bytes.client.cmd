iperf3 -c 127.0.0.1 -p 36777 -i 0.1 -n 10485760 --connect-timeout 5000 --json-stream
