"""Grammars are checked once for each tenant: how long a check takes tells nothing of the others."""

import asyncio

from headstart_server.limits import Limits
from headstart_server.media.decoder import MAX_CHECKED_GRAMMARS, MediaDecoder


class Pool:
    """Knows whose grammars were compiled."""

    def __init__(self):
        self.compiled = []

    async def run(self, tenant, job):
        self.compiled.append((tenant, job.content.decode()))


def compiled(*asked):
    pool = Pool()
    decoder = MediaDecoder(pool, Limits())

    async def run():
        for tenant, grammar in asked:
            await decoder.check_grammar(tenant, grammar)

    asyncio.run(run())
    return pool.compiled


def test_what_one_tenant_had_checked_is_checked_anew_for_another():
    asked = [("north", "plates"), ("south", "plates"), ("north", "plates"), ("south", "plates")]
    assert compiled(*asked) == asked[:2]


def test_a_tenant_with_many_grammars_pushes_out_its_own_alone():
    many = [("north", str(number)) for number in range(MAX_CHECKED_GRAMMARS + 1)]
    asked = [("south", "plates"), *many, ("south", "plates"), ("north", "1"), ("north", "0")]
    assert compiled(*asked) == [("south", "plates"), *many, ("north", "0")]
