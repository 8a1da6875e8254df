"""The adjudicator pod: the adjudicator restores snapshots and has their tests run in the task
container, whose root file system is read-only and whose writable places are wiped in between.
"""

from typing import Any

from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_operator.core.pods import containers, volumes
from stayer_operator.core.pods.pod import build_pod
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.trial.spec import TrialIdentity, TrialSpec


def build_adjudicator_pod(
    settings: PodSettings, identity: TrialIdentity, spec: TrialSpec, incarnation: int
) -> dict[str, Any]:
    """Manifest of the adjudicator pod of that incarnation.

    Only an inventory trial needs the image's /workspace: it makes the base tree of it, from which
    the others restore.
    """
    template = spec.template(Role.ADJUDICATOR)
    inventory = spec.kind is TrialKind.INVENTORY
    return build_pod(
        settings,
        identity,
        spec,
        Role.ADJUDICATOR,
        incarnation,
        volumes=[*volumes.pair_volumes(settings), *volumes.temporary_volumes(settings)],
        init_containers=[
            *([containers.seed_container(settings, spec)] if inventory else []),
            _adjudicator(settings, identity, spec, incarnation),
        ],
        task=containers.task_container(
            settings,
            spec,
            template,
            [
                volumes.read(volumes.RUNNER),
                volumes.read(volumes.JOBS),
                volumes.write(volumes.OUT),
                volumes.write(volumes.WORKSPACE),
                volumes.write(volumes.HOME),
                volumes.read(volumes.SUITE),
                volumes.write(volumes.TEMPORARY),
                volumes.write(volumes.LASTING_TEMPORARY),
            ],
            read_only_root=True,
        ),
    )


def _adjudicator(
    settings: PodSettings, identity: TrialIdentity, spec: TrialSpec, incarnation: int
) -> containers.Container:
    return containers.sidecar(
        settings,
        containers.ADJUDICATOR,
        "stayer_evaluator.adjudication",
        containers.sidecar_environment(
            settings, spec, identity.name, Role.ADJUDICATOR, incarnation
        ),
        [
            volumes.write(volumes.JOBS),
            volumes.read(volumes.OUT),
            volumes.write(volumes.WORKSPACE),
            volumes.write(volumes.HOME),
            volumes.write(volumes.STATE),
            volumes.write(volumes.SUITE),
            volumes.read(volumes.TOKEN),
        ],
        containers.FILE_CAPABILITIES,
    )
