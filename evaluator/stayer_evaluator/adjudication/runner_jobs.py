"""`Jobs` over the job client that both sidecars share."""

from stayer_evaluator.adjudication.ports import Done
from stayer_evaluator.episode.jobs import JobClient
from stayer_evaluator.records.jobs import Job

#: Of a log that is read into memory; the runner's own cap on the file is the same.
MAX_LOG = 16 * 1024**2


class RunnerJobs:
    """The runner behind a JobClient. The first job waits for its container to start at all."""

    def __init__(self, client: JobClient, start_patience: float) -> None:
        self._client = client
        self._patience: float | None = start_patience

    async def run(self, job: Job, stdin: bytes | None = None) -> Done:
        result = await self._client.run(job, stdin, start_patience=self._patience)
        self._patience = None
        return Done(result=result, log=self._client.log(job.id, MAX_LOG))
