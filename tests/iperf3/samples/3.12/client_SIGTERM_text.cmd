iperf3 -c 127.0.0.1 -p 5201  -t 10 ; SIGTERM at 2.5s
