iperf3 -c 127.0.0.1 -p 5401 -t 2 -u -b 0 -l 1400 -w 16K -R
