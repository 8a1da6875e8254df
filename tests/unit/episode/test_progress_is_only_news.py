"""Progress reports: sent on change, lost without a sound."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from stayer_evaluator.episode.progress import ProgressSender
from stayer_evaluator.records.reports import ProgressReport


def report(step: int) -> ProgressReport:
    return ProgressReport(trial="t", role="a", incarnation=1, step=step)


def make_sender(
    token: Path, answer: Callable[[httpx.Request], httpx.Response], interval: float = 2
) -> ProgressSender:
    """Of the same report again and again, answered by `answer`."""
    transport = httpx.MockTransport(answer)
    return ProgressSender(
        "http://progress", token, lambda: report(1), interval, transport=transport
    )


def test_a_report_is_sent_when_it_changed(tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    seen: list[httpx.Request] = []
    answers = [204, 503, 204]
    current = [report(1)]

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(answers[len(seen) - 1])

    async def scenario() -> ProgressSender:
        sender = ProgressSender(
            "http://progress", token, lambda: current[0], 2, transport=httpx.MockTransport(answer)
        )
        await sender.send()
        await sender.send()
        current[0] = report(2)
        await sender.send()  # refused
        await sender.close()  # once more at the end
        return sender

    sender = asyncio.run(scenario())

    assert (sender.sent, sender.lost) == (2, 1)
    assert [ProgressReport.from_bytes(request.content).step for request in seen] == [1, 2, 2]
    assert seen[0].url.path == "/v1/progress"
    assert seen[0].headers["authorization"] == "Bearer secret"


def test_trouble_is_counted_and_forgotten(tmp_path):
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no")

    async def scenario() -> ProgressSender:
        sender = make_sender(tmp_path / "none", answer)
        await sender.send()
        (tmp_path / "none").write_text("t")
        await sender.send()
        await sender.close()
        return sender

    assert asyncio.run(scenario()).lost == 3


def test_without_an_address_nothing_is_sent(tmp_path):
    async def scenario() -> ProgressSender:
        sender = ProgressSender("", tmp_path / "token", lambda: report(1), 2)
        await sender.run()
        await sender.close()
        return sender

    sender = asyncio.run(scenario())
    assert (sender.sent, sender.lost) == (0, 0)


def test_an_answer_may_say_that_the_trial_is_over(tmp_path):
    (tmp_path / "token").write_text("secret")
    answers = iter((503, 204, 204, 410))

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(next(answers))

    async def scenario() -> ProgressSender:
        sender = make_sender(tmp_path / "token", answer, interval=0.01)
        await asyncio.wait_for(sender.until_over(), 5)
        await sender.hang_up()
        return sender

    assert asyncio.run(scenario()).sent == 2
    assert next(answers, None) is None


@pytest.mark.parametrize("moment", range(12))
def test_who_is_cancelled_while_a_last_report_is_answered_does_not_go_on(tmp_path, moment: int):
    """The trial's end cancels the recorder's life in whatever moment it is learned of, also as the
    answer to the last report of that life comes.
    """
    (tmp_path / "token").write_text("secret")

    def cancel_after(iterations: int, life: asyncio.Task[None]) -> None:
        if iterations:
            asyncio.get_running_loop().call_soon(cancel_after, iterations - 1, life)
        else:
            life.cancel()

    async def scenario() -> None:
        def answer(request: httpx.Request) -> httpx.Response:
            cancel_after(moment, life)
            return httpx.Response(410)

        async def live() -> None:
            sender = make_sender(tmp_path / "token", answer)
            await sender.close()
            await asyncio.sleep(60)

        life = asyncio.create_task(live())
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(5):
                await life

    asyncio.run(scenario())
