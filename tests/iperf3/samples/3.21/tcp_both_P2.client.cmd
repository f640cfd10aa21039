iperf3 -c 127.0.0.1 -p 52787 --bidir -i 0.5 -t 1 -P 2 --connect-timeout 5000 --json-stream
