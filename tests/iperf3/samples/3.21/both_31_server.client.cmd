iperf3 -c 127.0.0.1 -p 57959 --bidir -i 1 -t 1 --connect-timeout 5000 --json-stream
