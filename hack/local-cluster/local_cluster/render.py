"""Renders the configuration files of the node's programs. Pure: settings in, text out."""

from __future__ import annotations

import json
from pathlib import Path

from local_cluster.settings import (
    BRIDGE,
    DNS_ADDRESS,
    NODE_ADDRESS,
    NODE_POD_NETWORK,
    Places,
)

CNI_NETWORK = "stayer-local"
PROBES = ["/healthz*", "/livez*", "/readyz*"]


def render_containerd(places: Places, cni_plugins: Path, pause_image: str) -> str:
    """The container runtime's configuration: all of it ours, nothing of the machine's."""
    return f"""\
version = 3
root = "{places.state}/containerd"
state = "{places.run}/state"
# Both would make directories outside of the state directory.
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]

[grpc]
address = "{places.containerd_socket}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause_image}"

[plugins."io.containerd.cri.v1.runtime"]
# Lowering oom_score_adj takes CAP_SYS_RESOURCE, which containers and many machines lack.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{cni_plugins}"]
conf_dir = "{places.config}/cni"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{places.bin}/runc"
Root = "{places.run}/runc"
"""


def render_cni(places: Places) -> str:
    """The pod network: a bridge of ours, masquerading, with ports of the host mapped."""
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(places.state / "cni"),
            "ranges": [[{"subnet": NODE_POD_NETWORK}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    network = {"cniVersion": "1.0.0", "name": CNI_NETWORK, "plugins": plugins}
    return json.dumps(network, indent=2) + "\n"


def render_kubelet(places: Places) -> str:
    """The kubelet's configuration file."""
    certificates = places.certificates
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificates / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificates / "kubelet-server.crt"),
        "tlsPrivateKeyFile": str(certificates / "kubelet-server.key"),
        "containerRuntimeEndpoint": f"unix://{places.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{places.unique_name}",
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        # The machine's own file: a stub resolver on loopback would answer no pod, but there is
        # none without systemd.
        "resolvConf": "/etc/resolv.conf",
        # What crashes here is being worked on: waits that grow to five minutes help nobody.
        "featureGates": {"KubeletCrashLoopBackOffMax": True},
        "crashLoopBackOff": {"maxContainerRestartPeriod": "1s"},
        "failSwapOn": False,
        "failCgroupV1": False,
        "maxPods": 110,
        "podLogsDir": str(places.state / "pod-logs"),
        "volumePluginDir": str(places.state / "kubelet-plugins"),
        "serializeImagePulls": False,
        "maxParallelImagePulls": 4,
        # A big disk that is rather full is no reason to evict here.
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "500Mi",
            "imagefs.available": "500Mi",
            "nodefs.inodesFree": "1%",
            "imagefs.inodesFree": "1%",
        },
        # 100 turns the collection of unused images off.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }
    return json.dumps(config, indent=2) + "\n"


def render_audit_policy() -> str:
    """Who asked what and with what result, of every request but health probes.

    One line for each request that ended (and one more for each watch that began).
    """
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "None", "nonResourceURLs": PROBES}, {"level": "Metadata"}],
    }
    return json.dumps(policy, indent=2) + "\n"
