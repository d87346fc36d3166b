"""No page of another site uses an open server, on whatever route of ours or of vLLM's."""

import re

import pytest

from headstart_server.routes import ROUTES

pytestmark = pytest.mark.engine
LISTED = re.compile(r"Route: (/\S*), (?:Methods|Endpoint)")


def paths_of(plain) -> set[str]:
    """Of every route that vLLM's server says it has, and of ours."""
    listed = set(LISTED.findall(plain.log.read_text(errors="replace")))
    described = set(plain.client("").get("/openapi.json").json()["paths"])
    assert {"/v1/models", "/metrics", "/docs"} <= listed, "it says it otherwise now"
    paths = listed | described | {route.path for route in ROUTES} | {"/nothing"}
    return {re.sub(r"\{[^}]*\}|\*", "x", path) for path in paths}


def test_no_route_answers_to_a_name_that_a_site_could_lead_here(pair):
    plain, ours = pair
    client, paths = ours.client(""), paths_of(plain)
    assert len(paths) > 20
    for path in sorted(paths):
        for method in ("GET", "POST"):
            for more in ({}, {"origin": f"http://evil.example:{ours.port}"}):
                headers = {"host": f"evil.example:{ours.port}", **more}
                reply = client.request(method, path, headers=headers, content=b"{}")
                assert reply.status_code == 421, f"{method} {path}: {reply.text[:200]}"
                assert "origins" in reply.text
    assert client.get("/v1/models").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_no_route_lets_a_page_of_another_site_change_anything(pair, headers):
    plain, ours = pair
    client = ours.client("")
    for path in sorted(paths_of(plain)):
        for method in ("POST", "DELETE", "PUT"):
            reply = client.request(method, path, headers=headers, content=b"{}")
            assert reply.status_code == 403, f"{method} {path}: {reply.text[:200]}"


def test_pages_of_its_own_and_programs_are_let_in(pair):
    _, ours = pair
    client = ours.client("")
    own = {"origin": ours.url, "sec-fetch-site": "same-origin"}
    assert client.post("/tokenize", json={"prompt": "a"}, headers=own).status_code == 200
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200  # a link
    assert client.post("/tokenize", json={"prompt": "a"}).status_code == 200


def test_an_open_server_says_no_path_of_its_disk(pair, tiny_target):
    plain, ours = pair
    (said,) = ours.client("").get("/v1/models").json()["data"]
    (by_vllm,) = plain.client("").get("/v1/models").json()["data"]
    assert said["root"] == said["id"]
    assert by_vllm["root"] == str(tiny_target)
    assert said.keys() == by_vllm.keys()
