"""The harness of the experiments: what is run, what is kept, what goes on and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from research import findings, grid, table
from research.results import row_value
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.pretraining.encoded_text import EncodedText
from spanbert_tutorial.pretraining.presets import Run
from spanbert_tutorial.text.encoding import EncodedCorpus

RUN = Run(objective="mlm", steps=9)


@pytest.fixture
def toy():
    """An experiment whose rows tell how they were asked; `asked` holds all calls."""
    made = ModuleType("research.toy")
    made.ARM = "way"
    made.ARMS = {"plain": 0, "twice": 1}
    made.SEEDS = 2
    made.asked = []
    made.SETTINGS = {"run": RUN, "pairs": ((1, 2),)}
    made.prepare = lambda folder, settings: ({"tokens": 7}, ("text",))

    def one(arm, seed, settings, text):
        made.asked.append((arm, seed))
        return {"steps": settings["run"].steps, "text": text}

    made.one = one
    return made


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_arm_with_every_seed(toy, tmp_path):
    output = tmp_path / "toy.json"
    grid.run(toy, output)
    kept = read(output)
    assert kept["command"] == "python -m research toy --output FILE --seeds 2"
    assert {"torch", "device", "threads"} <= set(kept["surroundings"])
    assert kept["arms"] == toy.ARMS and kept["run"]["steps"] == 9 and kept["tokens"] == 7
    assert kept["rows"] == [
        {"way": way, "seed": seed, "steps": 9, "text": "text"}
        for seed in range(2)
        for way in ("plain", "twice")
    ]
    assert [path.name for path in tmp_path.iterdir()] == [
        "toy.json"
    ]  # nothing half written is left


def test_a_stopped_command_goes_on_where_it_was_and_rows_keep_their_order(toy, tmp_path):
    output = tmp_path / "toy.json"
    grid.run(toy, output)
    whole = read(output)
    output.write_text(json.dumps(whole | {"rows": whole["rows"][1:3]}), encoding="utf-8")
    toy.asked.clear()
    grid.run(toy, output)
    assert toy.asked == [("plain", 0), ("twice", 1)] and read(output)["rows"] == whole["rows"]
    grid.run(toy, output, seeds=3)
    assert toy.asked[2:] == [("plain", 2), ("twice", 2)]
    before = output.read_bytes()
    grid.run(toy, output, seeds=1)  # there are more already
    assert output.read_bytes() == before


def other_run(toy):
    toy.SETTINGS = toy.SETTINGS | {"run": replace(RUN, max_length=32)}


def other_list(toy):
    toy.SETTINGS = toy.SETTINGS | {"pairs": ((1, 3),)}


def other_arm(toy):
    toy.ARMS = toy.ARMS | {"twice": 2}


def other_data(toy):
    toy.prepare = lambda folder, settings: ({"tokens": 8}, ("text",))


def more_settings(toy):
    toy.SETTINGS = toy.SETTINGS | {"questions": 5}


@pytest.mark.parametrize(
    "change, told",
    [
        (other_run, "run, max_length: 64 there, 32 now"),
        (other_list, "pairs: [[1, 2]] there, [[1, 3]] now"),
        (other_arm, "arms, twice: 1 there, 2 now"),
        (other_data, "tokens: 7 there, 8 now"),
        (more_settings, "it does not say its questions"),
    ],
)
def test_rows_of_other_settings_are_refused(toy, tmp_path, change, told):
    output = tmp_path / "toy.json"
    grid.run(toy, output, seeds=1)
    before = output.read_bytes()
    change(toy)
    with pytest.raises(InputError) as refused:
        grid.run(toy, output)
    assert f"({told})" in str(refused.value) and str(refused.value).endswith(
        "give another --output."
    )
    assert output.read_bytes() == before


def test_a_trial_has_fewer_steps_and_does_not_mix(toy, tmp_path):
    output = tmp_path / "toy.json"
    grid.run(toy, output, seeds=1, steps=4)
    assert read(output)["command"].endswith("--seeds 1 --steps 4")
    assert {row["steps"] for row in read(output)["rows"]} == {4} and toy.SETTINGS["run"] == RUN
    with pytest.raises(InputError, match="run, steps: 4 there, 9 now"):
        grid.run(toy, output, seeds=1)
    toy.SETTINGS = {}
    with pytest.raises(InputError, match="does no pre-training"):
        grid.run(toy, tmp_path / "other.json", steps=4)


@pytest.mark.parametrize(
    "content", ["", "no JSON", "[1]", "{}", '{"command": "x", "rows": []}', '{"rows": 5}']
)
def test_a_file_that_holds_something_else_is_left_alone(toy, tmp_path, content):
    output = tmp_path / "toy.json"
    output.write_text(content, encoding="utf-8")
    with pytest.raises(
        InputError, match="toy.json exists and holds no rows of toy: give another --output"
    ):
        grid.run(toy, output)
    assert output.read_text(encoding="utf-8") == content


def test_without_room_the_file_keeps_what_it_has(toy, tmp_path, monkeypatch):
    output = tmp_path / "toy.json"
    grid.run(toy, output, seeds=1)
    before = output.read_bytes()

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(grid, "write_json", full)
    with pytest.raises(
        InputError, match="toy.json .*No space left.*: make room and give the same command again"
    ):
        grid.run(toy, output, seeds=2)
    assert output.read_bytes() == before


def test_a_folder_is_no_output(toy, tmp_path):
    with pytest.raises(InputError, match="is a folder: give a file"):
        grid.run(toy, tmp_path)


def test_what_stands_beside_the_rows_is_computed_once(toy, tmp_path):
    output = tmp_path / "toy.json"
    computed = []
    toy.beside = lambda settings, text: computed.append(text) or {"short": len(computed)}
    for seeds in (1, 2):
        grid.run(toy, output, seeds)
    assert read(output)["short"] == 1 and computed == ["text"]


def test_an_arm_may_be_two_values_and_a_place_several_rows(toy, tmp_path):
    toy.ARM = ("arm", "from")
    toy.ARMS = (("mlm", "scratch"), ("mlm", "start"))
    toy.one = lambda arm, seed, settings, text: [{"task": task} for task in (1, 2)]
    grid.run(toy, tmp_path / "toy.json", seeds=1)
    rows = read(tmp_path / "toy.json")["rows"]
    assert rows == [
        {"arm": "mlm", "from": begin, "seed": 0, "task": task}
        for begin in ("scratch", "start")
        for task in (1, 2)
    ]
    toy.one = None  # nothing is left to do
    grid.run(toy, tmp_path / "toy.json", seeds=1)


def test_without_arms_there_is_a_row_a_seed(toy, tmp_path):
    del toy.ARM, toy.ARMS
    toy.one = lambda seed, settings, text: {"twice": 2 * seed}
    grid.run(toy, tmp_path / "toy.json")
    assert read(tmp_path / "toy.json")["rows"] == [{"seed": 0, "twice": 0}, {"seed": 1, "twice": 2}]


def test_what_is_measured_once_has_neither_seeds_nor_an_output_before(tmp_path):
    made = ModuleType("toy")
    made.content = lambda folder, data: {"found": data.name}
    grid.run(made, tmp_path / "toy.json", data=tmp_path / "here")
    assert read(tmp_path / "toy.json")["found"] == "here"
    assert read(tmp_path / "toy.json")["command"] == (
        "python -m research toy --data DATA --output FILE"
    )
    for options, told in (
        ({"seeds": 2}, "--seeds is given, but toy measures only once"),
        ({}, "exists already"),
    ):
        with pytest.raises(InputError, match=told):
            grid.run(made, tmp_path / "toy.json", data=tmp_path, **options)


def test_fingerprints_differ_where_the_parts_do():
    ids = np.arange(5, dtype=np.uint16)
    assert grid.fingerprint(ids) == grid.fingerprint(ids.copy()) != grid.fingerprint(ids + 1)
    assert grid.fingerprint(ids[::2]) == grid.fingerprint(ids[::2].copy())
    assert grid.fingerprint([("a", 1)]) != grid.fingerprint([("a", 2)])


def test_a_text_is_known_by_its_tokens_its_ends_and_its_vocabulary():
    rng = np.random.default_rng(0)
    ends = np.array([10, 20])
    corpus = EncodedCorpus(rng.integers(5, 20, 20).astype(np.uint16), ends, ends)
    first, second = (WordPiece.train(["a river and a mill"], size) for size in (40, 40))
    facts = grid.text_facts(EncodedText(corpus, corpus, first))
    assert facts == grid.text_facts(EncodedText(corpus, corpus, second)) and facts["tokens"] == 20
    others = [
        replace(corpus, ids=corpus.ids[::-1]),
        replace(corpus, sentence_ends=np.array([9, 20])),
    ]
    prints = [grid.text_facts(EncodedText(corpus, other, first))["fingerprint"] for other in others]
    assert len({facts["fingerprint"], *prints}) == 3


NOT_RUN = ("masking_and_answers",)  # needs a graphics card


@pytest.mark.parametrize("name", NOT_RUN)
def test_what_has_not_run_has_no_results_and_is_no_report(name):
    experiment = table.module_of(name)
    assert "graphics card" in table.EXPERIMENTS[name].asks and experiment.CLAIMS
    assert not list(data_path("results").parent.rglob(f"{name}.json"))
    assert name not in {report.name for report in findings.REPORTS}


@pytest.mark.parametrize("name", [name for name in table.EXPERIMENTS if name not in NOT_RUN])
def test_each_row_of_the_table_is_an_experiment_with_kept_results(name):
    """The kept file names its command, and every seed has all arms. What has not run to its end
    stands apart, with settings from which the command of today goes on."""
    finished = Path(data_path("results"), f"{name}.json").is_file()
    experiment = table.module_of(name)
    kept = read(data_path("results" if finished else "unfinished", f"{name}.json"))
    assert kept["command"].startswith(f"python -m research {name} ")
    assert {"torch", "device", "threads"} <= set(kept["surroundings"])
    if not finished:
        settings = grid.as_json(grid.definitions(experiment) | experiment.SETTINGS)
        assert {name: kept[name] for name in settings} == settings and kept["rows"]
        return
    if grid.measures_once(experiment):
        assert "rows" not in kept and "--seeds" not in kept["command"]
        return
    seeds = {row_value(row, "seed") for row in kept["rows"]}
    assert kept["command"].endswith(f"--seeds {len(seeds)}") and seeds == set(range(len(seeds)))
    assert not grid.missing(experiment, kept["rows"], len(seeds))
    json.dumps(grid.as_json(grid.definitions(experiment) | experiment.SETTINGS))
