iperf3 -c 127.0.0.1 -p 50471 -R -i 1 -t 2 -O 1 --connect-timeout 5000 -w 262144 -M 1000 -C reno --json-stream
