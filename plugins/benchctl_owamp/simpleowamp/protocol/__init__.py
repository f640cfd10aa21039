"""What OWAMP, TWAMP and STAMP say on the wire: pure, with no sockets, no threads and no clock."""
