"""A session, as vLLM's clients name it, is a stream of its tenant."""

import pytest

from rig.servers import CHAT, MODEL
from tests.serve.test_prediction import body_of


@pytest.mark.engine
def test_a_session_is_a_stream_of_its_tenant(north, south, tiny_target):
    body = body_of("What is a session?", tiny_target, headstart={})

    def remembered(client, header: str = "", path: str = CHAT, **more) -> int:
        """Tokens of the answer that the stream's memory drafted."""
        headers = {"X-Session-ID": header} if header else {}
        reply = client.post(path, json={**body, **more}, headers=headers)
        assert reply.status_code == 200, reply.text
        sources = reply.json()["headstart"]["sources"]
        return sources.get("memory", {}).get("accepted_tokens", 0)

    assert remembered(north, "front door") == 0
    assert remembered(north, "front door") > 0
    assert remembered(north, session_id="front door") > 0
    assert remembered(north, headstart={"stream": "front door"}) > 0
    assert remembered(north, vllm_xargs={"session_id": "front door"}) > 0
    assert remembered(north, path=f"/streams/front%20door{CHAT}") > 0
    assert remembered(south, "front door") == 0
    assert remembered(south, path=f"/streams/yard{CHAT}") == 0
    # headstart.stream goes before the body's name, and that before the header's.
    assert remembered(north, "front door", session_id="back door") == 0
    assert remembered(north, session_id="front door", headstart={"stream": "side door"}) == 0
    assert remembered(north, "garage", session_id="back door") > 0
    assert remembered(north, "attic", path=f"/streams/front%20door{CHAT}") == 0


@pytest.mark.engine
def test_an_address_with_a_stream_leads_to_the_same_routes(north):
    (model,) = north.get("/streams/yard/v1/models").json()["data"]
    assert model["id"] == MODEL
    for path in ("/streams/yard/metrics", "/streams//v1/models", "/streams/a/b/v1/models"):
        assert north.get(path).status_code == 404
    long = "x" * 129
    assert north.get(f"/streams/{long}/v1/models").status_code == 404
