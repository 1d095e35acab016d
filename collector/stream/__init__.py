"""Snapshots from one machine to the screen of another: UDP, TCP with TLS, and unix sockets."""
