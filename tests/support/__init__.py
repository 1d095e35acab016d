"""What tests share: target programs, the command line, programs from outside."""
