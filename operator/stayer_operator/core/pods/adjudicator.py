"""The adjudicator pod: the adjudicator restores snapshots and has their tests run in the task
container, whose root file system is read-only and whose writable places are wiped in between.
"""

from functools import lru_cache
from typing import Any

from stayer_evaluator.records.outcomes import Role, TrialKind
from stayer_operator.core.pods import containers, volumes
from stayer_operator.core.pods.pod import FRAMES, build_pod, shared_spec
from stayer_operator.core.pods.settings import PodSettings
from stayer_operator.core.pods.traits import Traits
from stayer_operator.core.trial.spec import TrialIdentity, TrialSpec


def build_adjudicator_pod(
    settings: PodSettings, identity: TrialIdentity, spec: TrialSpec, incarnation: int
) -> dict[str, Any]:
    """Manifest of the adjudicator pod of that incarnation. Never change it: others share its parts.

    Only an inventory trial needs the image's /workspace: it makes the base tree of it, from which
    the others restore.
    """
    shared = _shared(settings, Traits.of(spec, Role.ADJUDICATOR))
    return build_pod(shared, identity, spec, Role.ADJUDICATOR, incarnation)


@lru_cache(maxsize=FRAMES)
def _shared(settings: PodSettings, traits: Traits) -> dict[str, Any]:
    inventory = traits.kind is TrialKind.INVENTORY
    return shared_spec(
        settings,
        traits,
        grace_seconds=settings.adjudicator_grace_seconds,
        volumes=[*volumes.pair_volumes(settings), *volumes.temporary_volumes(settings)],
        init_containers=[
            *([containers.seed_container(settings, traits)] if inventory else []),
            _adjudicator(settings, traits),
        ],
        task=containers.task_container(
            settings,
            traits,
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


def _adjudicator(settings: PodSettings, traits: Traits) -> containers.Container:
    return containers.sidecar(
        settings,
        traits,
        containers.ADJUDICATOR,
        "stayer_evaluator.adjudication",
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
