"""The twins on their way: losses of the parts joined, a model of each part fine-tuned, the last scores taken over."""

import json

import pytest
import torch

from spanbert_tutorial.bert import EncoderConfig
from spanbert_tutorial.checkpoints import save_checkpoint
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.experiments import grid, span_tasks, squad_real, twins
from spanbert_tutorial.objectives import Objective
from spanbert_tutorial.pretraining import PretrainingModel
from spanbert_tutorial.wordpiece import WordPiece

WORDPIECE = WordPiece.from_file(data_path("checkpoints", "bert-mini", "tokenizer.json"))
NAMES = ["mini-start", *(f"{twin}-{part}" for twin in twins.TWINS for part in (1, 2))]


def record(folder, tokens: list[int], losses: list[float]) -> None:
    """The record of a run, with a line between two places that were measured."""
    rows = [{"step": place, "tokens": place, "seconds": 36 * place} for place in range(max(tokens) + 1)]
    for place, loss in zip(tokens, losses, strict=True):
        rows[place] |= {"held_out_token": loss, "held_out_span": loss + 1}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows[1:])), encoding="utf-8")


def parts(folder):
    """A folder of records, each part with losses of its own."""
    for number, name in enumerate(NAMES):
        record(folder / name, [10, 20], [10.0 - number, 9.5 - number])
    return folder


def test_the_record_of_a_part_has_its_length_and_the_measured_places(tmp_path):
    record(tmp_path, [5, 20], [4.0, 3.0])
    held_out = {"tokens": [5, 20], "token": [4.0, 3.0], "span": [5.0, 4.0]}
    assert twins.measured_losses(tmp_path / "metrics.jsonl") == {"steps": 20, "hours": 0.2, "held_out": held_out}


def test_a_missing_record_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nothing.metrics.jsonl is not the record of a part.*the cards"):
        twins.measured_losses(tmp_path / "nothing" / "metrics.jsonl")


def test_the_path_of_a_twin_begins_at_the_start_and_joins_its_parts(tmp_path):
    content = twins.beside({}, {}, parts(tmp_path))
    places, losses = twins.path(content, "spanbert-mini", "token")
    assert places == pytest.approx([number * 1e-5 for number in range(5)])
    assert losses == [9.5, 7.0, 6.5, 6.0, 5.5]
    del content["losses"]["mini-start"]["held_out"]["span"]  # as a loss of the boundary head, which it does not have
    assert twins.path(content, "bert-mini", "span")[1] == [10.0, 9.5, 9.0, 8.5]


def test_scores_at_three_points():
    both = [("mini-start", 1), ("bert-mini-1", 2), ("spanbert-mini-1", 3)]
    content = {"rows": [{"task": task, "model": model, "seed": seed,
                         "scores": {span_tasks.MAIN[task]: level + 10 * seed}}
                        for task in twins.TASKS for model, level in both for seed in range(2)]}  # fmt: skip
    last = [("bert-mini", 4), ("spanbert-mini", 5), ("new weights", 0)]
    tasks = {"rows": [{"task": task, "start": start, "seed": seed,
                       "scores": {span_tasks.MAIN[task]: level + 10 * seed}}
                      for task in twins.TASKS for start, level in last for seed in range(2)]}  # fmt: skip
    for task in twins.TASKS:
        assert twins.scores(content, tasks, task) == {
            0: {"bert-mini": [1, 11], "spanbert-mini": [1, 11]}, 1: {"bert-mini": [2, 12], "spanbert-mini": [3, 13]},
            2: {"bert-mini": [4, 14], "spanbert-mini": [5, 15]}}  # fmt: skip


def test_every_model_is_fine_tuned_on_both_tasks_with_its_own_weights(tmp_path, monkeypatch):
    config = EncoderConfig.tiny(vocab_size=len(WORDPIECE), num_hidden_layers=1)
    for number, name in enumerate(twins.ARMS[::2]):
        torch.manual_seed(number)
        model = PretrainingModel(config, Objective.named("mlm"))
        save_checkpoint(tmp_path / "parts" / name[1], model, WORDPIECE, "mlm", {})
    parts(tmp_path / "parts")
    asked = []

    def measured(task):
        def one(encoder, wordpiece, data, seed):
            asked.append((task, round(encoder.embeddings.words.weight.sum().item(), 3), seed, data["train"]))
            return {span_tasks.MAIN[task]: 7.0}
        return one

    for task, module in twins.TASKS.items():
        monkeypatch.setattr(module, "parts", lambda folder, task=task: {"train": [task], "test": []})
        monkeypatch.setattr(module, "measured", measured(task))
    output = tmp_path / "twins.json"
    grid.run(twins, output, 1, data=tmp_path, parts=tmp_path / "parts")
    found = json.loads(output.read_text(encoding="utf-8"))
    assert [(row["task"], row["model"]) for row in found["rows"]] == list(twins.ARMS)
    assert [task for task, *_ in asked] == [data for *_, (data,) in asked] == [task for task, _ in twins.ARMS]
    assert len({weights for _, weights, *_ in asked}) == 3 and {seed for *_, seed, _ in asked} == {0}
    assert set(found["losses"]) == set(NAMES) and found["claims"] == twins.CLAIMS


def test_the_shipped_models_stand_for_the_last_parts():
    assert set(twins.TWINS) <= set(squad_real.STARTS) & set(span_tasks.STARTS)
