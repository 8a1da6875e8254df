"""Harnesses that are a program: prompt, files, exits, transcripts, retries, rounds."""

import asyncio
import json

import zstandard

from makers_episode import make_document, make_pod, make_store, play, read_queue, snapshots, tree_of
from stayer_evaluator.episode.main import Program
from stayer_evaluator.harnesses.describe import parse_description
from stayer_evaluator.records.queue import EndEntry
from stayer_evaluator.records.trial import AgentSettings, LoopProfile, SnapshotSettings, Timeouts


def run(program: str, description: str = "", **changes):
    """An episode of a shell program; its store."""
    text = f"name: shell\nkind: command\ncommand: [sh, '${{home}}/program']\n{description}"
    if "files:" not in description:
        text += "files:\n"
    content = json.dumps(program.replace("$", "$$"))
    text += f"  - {{path: program, content: {content}}}\n"
    catalog = {"shell": parse_description(text, "shell.yaml")}
    fields = {
        "agent": AgentSettings(name="shell", harness="shell", env={"EXTRA": "given"}),
        "model": "some-model",
        "snapshots": SnapshotSettings(interval_seconds=60),
        **changes,
    }
    document = make_document("shell", **fields)
    store = make_store(document)
    with make_pod(document) as pod:
        assert asyncio.run(play(pod, store, Program(pod.settings, store, catalog=catalog))) == 0
    end = read_queue(store)[-1]
    assert isinstance(end, EndEntry)
    return store, end


def last_files(store):
    return asyncio.run(tree_of(store, snapshots(store)[-1]))


def test_a_program_gets_prompt_files_model_and_environment():
    store, end = run(
        """cat > prompt
cat "$HOME/.stayer/prompt.md" > file
cat "$HOME/conf" > conf
echo "$EXTRA $IMAGE $TOOL" > env""",
        """stdin: prompt
env: {TOOL: "${model}!"}
files:
  - {path: conf, content: '{"m": "${model}"}'}
""",
    )

    files = last_files(store)
    assert end.failure_mode == "none"
    assert "Write a calculator." in files["prompt"]
    assert files["file"] == files["prompt"]
    assert files["conf"] == '{"m": "some-model"}'
    assert files["env"] == "given yes some-model!\n"


def test_each_round_is_a_fresh_program_that_hears_what_is_left():
    store, end = run(
        """cat > "prompt$(ls prompt* 2>/dev/null | wc -l)"
mkdir -p requirement_patches
for unit in parser engine report; do
  [ -e requirement_patches/$unit.diff ] || { echo x > requirement_patches/$unit.diff; break; }
done""",
        "stdin: prompt\n",
        loop=LoopProfile(outer_loop_count=0),
        timeouts=Timeouts(agent_seconds=600),
    )

    files = last_files(store)
    assert [record.number for record in end.episode.rounds] == [1, 2, 3]
    assert "Where you are" not in files["prompt0"]
    assert "- engine\n- report\n" in files["prompt1"]
    assert "- engine" not in files["prompt2"]
    assert "- report\n" in files["prompt2"]


def test_a_limited_program_is_started_again_in_the_same_round():
    _, end = run(
        "[ -e again ] && exit 0; touch again; exit 75",
        "exitCodes: {75: agent_rate_limited}\n",
        loop=LoopProfile(outer_loop_count=1, rate_limit_backoff_seconds=1),
    )

    assert end.failure_mode == "none"
    assert [record.rate_limit_retries for record in end.episode.rounds] == [1]


def test_a_program_that_outlives_its_round_is_ended_with_all_it_started():
    store, end = run("setsid sleep 300 & while :; do :; done", timeouts=Timeouts(agent_seconds=1))

    assert end.failure_mode == "agent_timeout"
    assert end.episode.spent_seconds < 10
    assert not any("/transcripts/" in key for key in store.objects)


def test_what_a_program_prints_is_kept():
    store, _ = run("echo hello; echo trouble >&2; exit 0")

    key = next(key for key in store.objects if "/transcripts/" in key)
    text = zstandard.ZstdDecompressor().decompress(store.objects[key])
    assert text == b"hello\ntrouble\n"


def test_a_program_that_is_not_there_is_a_failed_start():
    _, end = run("true", "env: {PATH: /nowhere}\n")

    assert end.failure_mode == "agent_startup_error"
    assert '"sh": executable file not found in $PATH' in end.message
