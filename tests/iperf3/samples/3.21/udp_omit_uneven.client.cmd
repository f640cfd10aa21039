iperf3 -c 127.0.0.1 -p 45973 -R -i 0.3 -t 1 -O 1 -u --udp-counters-64bit -b 20000000 -l 1448 --connect-timeout 5000 --json-stream
