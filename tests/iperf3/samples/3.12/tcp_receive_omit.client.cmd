iperf3 -c 127.0.0.1 -p 50217 -R -i 1 -t 2 -O 1 --connect-timeout 5000 -w 262144 -M 1000 -C reno -V -f k --forceflush --debug=1
