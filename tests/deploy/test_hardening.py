"""What each container may do and take, read from the manifests: one that is added without a limit
fails here."""

import copy
import ipaddress
import re

import pytest
import yaml

from tests.deploy.files import DEPLOY, read

MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
OVERLAYS = sorted(set(DEPLOY.glob("compose*.yaml")) - {DEPLOY / "compose.yaml"})
COMPOSE = read("compose.yaml")
WRITTEN = ("/tmp", "/home/headstart", "/models", "/dev/shm")
"""What a server writes: scratch, caches, models, shared memory. docs/operation.md names them."""
NEVER = [
    ipaddress.ip_network(each)
    for each in (
        "10.0.0.0/8",
        "127.0.0.0/8",
        "169.254.169.254/32",
        "172.16.0.0/12",
        "192.168.0.0/16",
    )
]
"""What a server on the internet's side must not reach; the fourth tells a node's credentials."""


def documents():
    return [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]


def of_kind(kind):
    return [each for each in documents() if each["kind"] == kind]


def pods():
    """The pod of every workload, by its name."""
    found = {}
    for each in documents():
        spec = each.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        template = each if each["kind"] == "Pod" else spec.get("template", {})
        if "containers" in template.get("spec", {}):
            found[f"{each['kind']}/{each['metadata']['name']}"] = template
    return found


def faults_of_pod(pod):
    """Why a pod should not be started."""
    spec, faults = pod["spec"], []
    context = spec.get("securityContext", {})
    if spec.get("automountServiceAccountToken") is not False:
        faults.append("has the cluster's token")
    if not context.get("runAsNonRoot"):
        faults.append("may run as root")
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        faults.append("has no seccomp profile")
    if any(spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC")):
        faults.append("shares name spaces with its node")
    for volume in spec.get("volumes", ()):
        if "hostPath" in volume:
            faults.append(f"{volume['name']} is the node's")
        if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]:
            faults.append(f"{volume['name']} has no size")
    for container in [*spec["containers"], *spec.get("initContainers", ())]:
        limits = container.get("resources", {}).get("limits", {})
        faults += [
            f"no limit of {name}" for name in ("memory", "ephemeral-storage") if name not in limits
        ]
        own = container.get("securityContext", {})
        if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
            faults.append("may get privileges")
        if own.get("readOnlyRootFilesystem") is not True:
            faults.append("writes to its image")
        if own.get("capabilities") != {"drop": ["ALL"]}:
            faults.append("has capabilities")
    return faults


def faults_of_service(service):
    """Why a service of compose should not be started."""
    faults = [f"no {name}" for name in ("mem_limit", "pids_limit") if not service.get(name)]
    if service.get("read_only") is not True:
        faults.append("writes to its image")
    if service.get("cap_drop") != ["ALL"] or service.get("cap_add") or service.get("privileged"):
        faults.append("has capabilities")
    if "no-new-privileges:true" not in service.get("security_opt", ()):
        faults.append("may get privileges")
    if not service.get("networks"):
        faults.append("is on the network of all others")
    for port in service.get("ports", ()):
        if not re.fullmatch(r"127\.0\.0\.1:\d+:\d+", port):
            faults.append(f"{port} is open to other machines")
    for volume in service.get("tmpfs", ()):
        if "size=" not in volume:
            faults.append(f"{volume} has no size")
    return faults


def test_every_pod_is_held_in():
    assert pods()
    assert {name: faults for name, pod in pods().items() if (faults := faults_of_pod(pod))} == {}


def test_every_service_is_held_in():
    assert len(COMPOSE["services"]) == 3
    faults = {name: faults_of_service(each) for name, each in COMPOSE["services"].items()}
    assert {name: found for name, found in faults.items() if found} == {}


HELD = ("mem_limit", "pids_limit", "read_only", "cap_drop", "security_opt", "networks")


@pytest.mark.parametrize("left_out", HELD)
def test_a_service_without_a_limit_is_noticed(left_out):
    for service in COMPOSE["services"].values():
        assert faults_of_service({name: each for name, each in service.items() if name != left_out})


@pytest.mark.parametrize(
    "path",
    [
        "automountServiceAccountToken",
        "securityContext runAsNonRoot",
        "securityContext seccompProfile",
        "containers 0 securityContext readOnlyRootFilesystem",
        "containers 0 securityContext allowPrivilegeEscalation",
        "containers 0 securityContext capabilities",
        "containers 0 resources limits memory",
        "containers 0 resources limits ephemeral-storage",
        "volumes 1 emptyDir sizeLimit",
    ],
)
def test_a_pod_without_a_limit_is_noticed(path):
    for pod in pods().values():
        changed = copy.deepcopy(pod)
        place = changed["spec"]
        *above, last = path.split()
        for name in above:
            place = place[int(name) if name.isdecimal() else name]
        del place[last]
        assert faults_of_pod(changed)


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.name)
def test_what_is_laid_over_compose_takes_nothing_back(overlay):
    for service in yaml.safe_load(overlay.read_text())["services"].values():
        assert not service.keys() & {*HELD, "cap_add", "privileged", "ports", "environment"}


def test_what_a_server_writes_is_mounted():
    """Its root cannot be written to."""
    for pod in pods().values():
        (server,) = pod["spec"]["containers"]
        mounts = {mount["mountPath"]: mount for mount in server["volumeMounts"]}
        assert all(not mounts[path].get("readOnly") for path in WRITTEN)
    server = COMPOSE["services"]["headstart"]
    places = [volume.split(":")[1] for volume in server["volumes"]]
    places += [each.split(":")[0] for each in server["tmpfs"]]
    assert {*WRITTEN} <= {*places, "/dev/shm"}  # `shm_size` is of the last
    assert "shm_size" in server
    for image in (DEPLOY / "images").glob("*.Dockerfile"):
        text = image.read_text()
        assert re.search(r"^WORKDIR /home/headstart$", text, re.M)
        assert re.search(r"HF_HOME=/models", text)


def test_compiled_code_can_be_loaded_from_where_it_is_written():
    """Docker mounts memory so that nothing in it can be executed, unless it is told to."""
    (scratch,) = COMPOSE["services"]["headstart"]["tmpfs"]
    assert "exec" in scratch.partition(":")[2].split(",")


def test_the_namespace_takes_restricted_pods_only():
    (namespace,) = of_kind("Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert namespace["metadata"]["name"] == read("kustomization.yaml")["namespace"]


def test_every_manifest_is_applied():
    applied = set(read("kustomization.yaml")["resources"])
    assert applied == {f"kubernetes/{path.name}" for path in MANIFESTS}


def test_nobody_reaches_a_pod_but_who_is_named():
    policies = [each["spec"] for each in of_kind("NetworkPolicy")]
    assert {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]} in policies
    for policy in policies:
        for rule in policy.get("ingress", ()):
            assert rule["ports"]
            assert rule["from"]
            for peer in rule["from"]:
                assert peer["namespaceSelector"]["matchLabels"]
    for pod in pods().values():
        labels = pod["metadata"]["labels"]
        mine = [each for each in policies if each["podSelector"].get("matchLabels") == labels]
        asked = [
            peer for policy in mine for rule in policy.get("ingress", ()) for peer in rule["from"]
        ]
        assert len(asked) == 2  # the router and Prometheus


def test_pods_reach_only_what_they_need():
    """Not the cluster, not other machines of the network, and not what tells credentials."""
    for policy in of_kind("NetworkPolicy"):
        for rule in policy["spec"].get("egress", ()):
            assert rule["ports"]
            for peer in rule["to"]:
                if "ipBlock" not in peer:
                    assert peer["namespaceSelector"]["matchLabels"]
                    continue
                block = ipaddress.ip_network(peer["ipBlock"]["cidr"])
                excepted = [
                    ipaddress.ip_network(each) for each in peer["ipBlock"].get("except", ())
                ]
                for network in NEVER:
                    assert not block.overlaps(network) or any(
                        network.subnet_of(each) for each in excepted
                    ), f"{policy['metadata']['name']} opens {network}"


def test_nothing_has_a_password_that_everybody_knows():
    for service in COMPOSE["services"].values():
        for name, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|TOKEN|KEY", name):
                assert re.fullmatch(r"\$\{\w+:\?.+\}", value), name  # unset or empty: no start
    assert "GF_SECURITY_ADMIN_PASSWORD" in COMPOSE["services"]["grafana"]["environment"]


def test_prometheus_is_reached_by_grafana_only():
    services, networks = COMPOSE["services"], COMPOSE["networks"]
    assert "ports" not in services["prometheus"]
    assert all(networks[name]["internal"] for name in services["prometheus"]["networks"])
    beside = {
        name: set(each["networks"]) & set(services["prometheus"]["networks"])
        for name, each in services.items()
        if name != "prometheus"
    }
    # The server is what it scrapes; it asks Prometheus nothing, and Grafana never meets the server.
    assert beside == {"headstart": {"scrape"}, "grafana": {"panels"}}
    assert not set(services["headstart"]["networks"]) & set(services["grafana"]["networks"])
