"""Alerts, dashboards and autoscaling name metrics, labels and buckets that the server exports."""

import json
import re
import shutil
import subprocess

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client import REGISTRY, generate_latest

from headstart_server import metrics
from tests.deploy.files import DEPLOY, ROOT, read

MONITORING = DEPLOY / "monitoring"
OURS = re.compile(r"\bheadstart_\w+")


def rules():
    return [rule for group in read("monitoring/alerts.yaml")["groups"] for rule in group["rules"]]


def expressions():
    """Every expression that is asked of Prometheus, by where it stands."""
    found = {rule.get("alert") or rule["record"]: rule["expr"] for rule in rules()}
    for path in (MONITORING / "fleet-dashboard.json", ROOT / "docs" / "headstart-dashboard.json"):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                found[f"{path.name}: {panel['title']} {target['refId']}"] = target["expr"]
    return found


def test_every_metric_of_ours_is_exported():
    exported = generate_latest(REGISTRY).decode()
    names = {name for expression in expressions().values() for name in OURS.findall(expression)}
    for each in read("kubernetes/autoscaling.yaml")["spec"]["metrics"]:
        names.add(each["pods"]["metric"]["name"])
    assert len(names) > 15
    missing = [name for name in names if not re.search(rf"^# TYPE {base(name)} ", exported, re.M)]
    assert not missing


def base(name):
    """Under which name a metric is announced."""
    return re.sub(r"_(bucket|count|sum)$", "", name)


def test_recorded_metrics_are_those_that_are_used():
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    used = {
        name
        for expression in expressions().values()
        for name in re.findall(r"headstart:[\w:]+", expression)
    }
    assert recorded == used


def test_the_promised_wait_is_a_bucket():
    bounds = {
        sample.labels["le"]
        for family in metrics.LIVE_WAIT.collect()
        for sample in family.samples
        if sample.name.endswith("_bucket")
    }
    asked = {
        bound
        for expression in expressions().values()
        for bound in re.findall(r'le="([\d.]+)"', expression)
    }
    assert asked
    assert asked <= bounds


def test_fates_of_windows_are_those_that_cameras_count():
    source = (ROOT / "server" / "headstart_server" / "live" / "camera.py").read_text()
    known = set(re.findall(r'"(\w+)": live\.\w+', source))
    asked = {
        fate
        for expression in expressions().values()
        for fates in re.findall(r'fate=~"([\w|]+)"', expression)
        for fate in fates.split("|")
    }
    assert {"ended", "dropped", "lost"} <= asked <= known


def test_every_alert_says_what_to_do():
    alerts = [rule for rule in rules() if "alert" in rule]
    assert len(alerts) >= 6
    for alert in alerts:
        assert alert["labels"]["severity"] in ("page", "ticket")
        assert alert["annotations"]["action"].endswith(".")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize(
    "command",
    [
        ["check", "rules", "alerts.yaml"],
        ["check", "config", "prometheus.yaml"],
        ["test", "rules", "alerts-test.yaml"],
    ],
    ids=" ".join,
)
def test_promtool_accepts(command, tmp_path):
    folder = shutil.copytree(MONITORING, tmp_path / "monitoring")
    (folder / "headstart.key").write_text("a key")  # which its owner writes
    done = subprocess.run(
        ["promtool", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested():
    tested = {
        case["alertname"]
        for test in read("monitoring/alerts-test.yaml")["tests"]
        for case in test["alert_rule_test"]
    }
    assert tested == {rule["alert"] for rule in rules() if "alert" in rule}
