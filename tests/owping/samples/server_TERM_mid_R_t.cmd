owping -R -t -c 200 -i 0.02 127.0.0.1   # owampd ended by SIG TERM after 2.5 s
