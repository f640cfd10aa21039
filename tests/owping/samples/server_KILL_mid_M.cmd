owping -M -b 0.000001 -c 200 -i 0.02 127.0.0.1   # owampd ended by SIG KILL after 2.5 s
