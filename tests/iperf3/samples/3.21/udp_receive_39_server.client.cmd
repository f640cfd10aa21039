iperf3 -c 127.0.0.1 -p 43471 -R -i 1 -t 2 -u --udp-counters-64bit -b 20000000 -l 1448 --connect-timeout 5000 --json-stream
