"""The hostile suite: damage, kills, bombs, requests, full disks and attackers against the program.

`cargo xtask hostile --minutes N` runs it large, pytest runs it small. `docs/testing.md` says what each part expects.
"""
