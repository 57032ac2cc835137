"""The twins on their way: the record of each part, parts joined, and by how much one leads."""

import json
import re
import shlex

import pytest
from page_links import BOOK, markdown

from research.experiments import span_tasks, squad_real, twins
from spanbert_tutorial.__main__ import main, parser
from spanbert_tutorial.engine.files import data_path

PAGE = markdown(BOOK / "evidence" / "masking_and_copying.ipynb")
NAMES = ["short", "mini-start", *(f"{twin}-{part}" for twin in twins.TWINS for part in (1, 2))]


def record(folder, tokens: list[int], losses: list[float]) -> None:
    """The record of a run, with a line between two places that were measured."""
    rows = [
        {"step": place, "tokens": place, "seconds": 36 * place} for place in range(max(tokens) + 1)
    ]
    for place, loss in zip(tokens, losses, strict=True):
        rows[place] |= {"held_out_token": loss, "held_out_span": loss + 1}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows[1:])), encoding="utf-8")


@pytest.fixture
def content(tmp_path):
    """What the command makes of a folder of records, each part with losses of its own."""
    for number, name in enumerate(NAMES):
        record(tmp_path / name, [10, 20], [10.0 - number, 9.5 - number])
    output = tmp_path / "twins.json"
    assert main(["experiment", "twins", "--parts", str(tmp_path), "--output", str(output)]) == 0
    return json.loads(output.read_text(encoding="utf-8"))


def test_the_record_of_a_part_has_its_length_and_the_measured_places(tmp_path):
    record(tmp_path, [5, 20], [4.0, 3.0])
    held_out = {"tokens": [5, 20], "token": [4.0, 3.0], "span": [5.0, 4.0]}
    assert twins.measured_losses(tmp_path / "metrics.jsonl") == {
        "steps": 20,
        "hours": 0.2,
        "held_out": held_out,
    }


def test_a_missing_record_is_named(tmp_path, capsys):
    record(tmp_path / "short", [1], [1.0])
    assert (
        main(["experiment", "twins", "--parts", str(tmp_path), "--output", str(tmp_path / "out")])
        == 2
    )
    said = capsys.readouterr().err
    assert (
        f"{tmp_path / 'mini-start' / 'metrics.jsonl'} is not the record of a part" in said
        and "masking_and_copying" in said
    )
    assert not (tmp_path / "out").exists()


def test_the_path_of_a_twin_begins_at_the_start_and_joins_its_parts(content):
    places, losses = twins.path(content, "spanbert-mini", "token")
    assert places == pytest.approx([number * 1e-5 for number in range(5)])
    assert losses == [8.5, 6.0, 5.5, 5.0, 4.5]
    assert twins.joined(content, ["short", "mini-start"], "span")[1] == [11.0, 10.5, 10.0, 9.5]
    del content["losses"]["mini-start"]["held_out"][
        "span"
    ]  # as a loss of the boundary head, which it does not have
    assert twins.path(content, "bert-mini", "span")[1] == [9.0, 8.5, 8.0, 7.5]


def test_the_lead_is_what_the_one_is_below_the_other(content):
    assert twins.lead(content, "token") == [2.0, 2.0]
    content["losses"]["spanbert-mini-2"]["held_out"]["token"][-1] = 9.0
    assert twins.lead(content, "token") == [2.0, -2.5]


def test_the_page_has_a_command_for_each_saved_part():
    saved = json.loads(data_path("results", "twins.json").read_text(encoding="utf-8"))["losses"]
    assert list(saved) == NAMES
    commands = {
        output: int(steps)
        for steps, output in re.findall(r"--steps (\d+) [^`]*?--output FOLDER/(\S+)", PAGE)
    }
    assert list(commands) == ["easy", *NAMES[:4]]
    for twin in twins.TWINS:  # alike but for the objective
        for part in (1, 2):
            assert saved[f"{twin}-{part}"]["steps"] == commands[f"bert-mini-{part}"]
    assert all(saved[name]["steps"] == commands[name] for name in NAMES[:2])
    assert PAGE.count("--leave-out data/squad_dev_titles.txt") == 4


def test_the_commands_of_the_page_are_read():
    (block,) = re.findall(r"```bash\n(python -m spanbert_tutorial pretrain.*?)```", PAGE, re.DOTALL)
    commands = re.findall("spanbert_tutorial (pretrain .*)", block.replace("\\\n", " "))
    assert len(commands) == 5
    for command in commands:
        given = shlex.split(command)
        for objective in ("mlm+nsp", "span+sbo"):
            given[given.index("--objective") + 1] = objective
            assert parser().parse_args(given).steps
    assert len(re.search(r"<details>.*?</details>", PAGE, re.DOTALL)[0].splitlines()) <= 25


def test_a_hundred_million_tokens_were_read_by_each():
    saved = json.loads(data_path("results", "twins.json").read_text(encoding="utf-8"))
    before = twins.joined(saved, list(twins.START), "token")[0][-1]
    for twin in twins.TWINS:
        read = 3.0 + before + twins.path(saved, twin, "token")[0][-1]
        for name in (
            "first_pair_answers",
            "first_pair_copying",
            "first_pair_tasks",
            "first_pair_made",
        ):
            file = data_path("results", name + ".json")
            models = json.loads(file.read_text(encoding="utf-8"))["models"]
            assert "100.2 million tokens each" in models and read == pytest.approx(100.2, abs=0.1)


def test_the_tasks_start_from_models_of_these_names():
    assert set(twins.TWINS) <= set(squad_real.STARTS) & set(span_tasks.STARTS)
