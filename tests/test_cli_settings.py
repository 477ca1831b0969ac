"""Settings of planners, limits and checkpoints on the command line."""

import json

import pytest

from command_line import assert_refused, folder_of_models, run, run_process

folder = pytest.fixture(folder_of_models)


@pytest.mark.parametrize(
    ("planner", "arguments", "expected"),
    [
        ("sparse-sampling", ["--option", "width=3", "--horizon", "2"], "horizon=2, width=3"),
        ("sparse-sampling", ["--epsilon", "4", "--horizon", "1"], "epsilon=4.0, delta=0.1"),
        ("bracket", ["--option", "value_bounds={m}:bounds", "--epsilon", "4"], "value_bounds="),
        ("mdp-gape", ["--thresholds", "{m}:flat", "--epsilon", "4"], "thresholds="),
        ("bracket", ["--option", "goal=value", "--option", "epsilon=4"], "goal='value'"),
        ("smooth-cruiser", ["--option", "temperature=0.1"], "temperature=0.1"),
    ],
)
def test_every_setting_of_a_planner(folder, planner, arguments, expected):
    arguments = [argument.format(m=folder) for argument in arguments]
    command = ["plan", f"{folder}:table", "--planner", planner, "--budget", "200", "--json"]
    outcome = run(*command, "--gamma", "0.7", *arguments)
    assert outcome.code in (0, 3), outcome.stderr
    assert expected in json.loads(outcome.stdout)["planner"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--option", "merge"], ["--option: takes NAME=VALUE, got 'merge'"]),
        (["--option", "colour=red"], ["takes no colour", "--value-range"]),
        (["--planner", "sparse-sampling", "--option", "width=3"], ["width needs a horizon"]),
        (["--memory-limit", "much"], ["--memory-limit", "500M", "'much'"]),
        (["--memory-limit", "0"], ["--memory-limit must", "0"]),
        (["--resume"], ["--checkpoint"]),
        (["--checkpoint", "no/such/file"], ["no/such/file", "no such folder"]),
        (["--checkpoint", "."], ["--checkpoint '.' is no place for a file"]),
        (["--checkpoint", "file", "--every", "0"], ["--every must", "0"]),
        (["--checkpoint", "no-such-file", "--resume"], ["no checkpoint no-such-file"]),
    ],
    ids=" ".join,
)
def test_wrong_settings(folder, arguments, words):
    assert_refused(run("plan", "garnet", *arguments), 2, *words)


def test_resuming_from_the_command(folder, tmp_path):
    model = f"{folder}:pressing"
    command = ["plan", model, "--set", "last=50", "--planner", "uct", "--json", "--checkpoint", "saved"]
    command += ["--every", "1e-9", "--gamma", "0.7"]
    wanted = ["--seed", "3", "--budget", "120"]
    first = run_process(*command, *wanted, cwd=tmp_path)
    assert first.code == 130
    assert first.stderr == "pacplan: stopped; --resume goes on from saved\n"
    for extra, words in (
        (["--seed", "3"], ["from the checkpoint", "leave them out"]),
        (["--option", "exploration=1.0"], ["another planner"]),
    ):
        assert_refused(run(*command, *extra, "--resume"), 2, *words)
    saved = (tmp_path / "saved").read_bytes()
    records = []
    for extra in (["--resume"], wanted):
        (tmp_path / "saved").write_bytes(saved)
        done = run(*command, *extra)
        assert done.code == 0, done.stderr
        record = json.loads(done.stdout)
        del record["seconds"], record["memory"]
        records.append(record)
    assert records[0] == records[1]
    assert records[0]["samples"] == 120


CHOSEN = ("--json", "--checkpoint", "saved", "--every", "1e-9", "--epsilon", "20%", "--horizon", "4")
CHOSEN += ("--gamma", "0.7")


def test_resuming_what_was_chosen(folder, tmp_path):
    """A checkpoint names its planner, so nothing is looked at again."""
    command = ["plan", f"{folder}:walking", "--set", "last=150", *CHOSEN]
    first = run_process(*command, "--seed", "3", cwd=tmp_path)
    assert first.code == 130, first.stderr
    assert first.stderr == "pacplan: stopped; --resume goes on from saved\n"
    refused = run(*command, "--delta", "0.2", "--resume")
    assert_refused(refused, 2, "another planner", "delta=0.1", "delta=0.2")
    saved = (tmp_path / "saved").read_bytes()
    records = []
    for extra in (["--resume"], ["--seed", "3"]):
        (tmp_path / "saved").write_bytes(saved)
        done = run_process(*command, *extra, cwd=tmp_path)
        assert done.code == 0, done.stderr
        records.append(json.loads(done.stdout))
        told = records[-1].pop("guarantee")
        del records[-1]["seconds"], records[-1]["memory"], records[-1]["calls_made"]
        assert ("as chosen before" in told) == (extra == ["--resume"])
    assert records[0] == records[1]
