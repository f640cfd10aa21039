ping -D -O -n -c 15 -i 0.2 receiver
