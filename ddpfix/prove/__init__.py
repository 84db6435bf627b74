"""Proof by execution: a training program run as real ranks on the CPU, watched from outside and from inside.

`ranks` starts and watches the processes, `tracer` is what runs inside of each, `traces` reads what it wrote, `compare` says
what the ranks disagree on.
"""
