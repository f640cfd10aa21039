iperf3 -c 127.0.0.1 -p 45683 -R -i 1 -t 2 -O 1 --connect-timeout 5000 -V -f k --forceflush
