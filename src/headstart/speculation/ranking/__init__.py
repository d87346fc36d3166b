"""What the ranker is made of: the answers it quotes, the places it looks at, and its network.

All of it is compiled by numba, and imported by `headstart.speculation.ranker` alone.
"""
