iperf3 -c 127.0.0.1 -p 43855 -i 0.5 -t 1 -O 1 -u --udp-counters-64bit -b 0 -l 1448 --connect-timeout 5000 -w 4096 --json-stream
