"""What somebody adds who reads "How to add a task chapter": a task, here two labels for a
sentence."""

from pathlib import Path

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import classification, task_checkpoints
from spanbert_tutorial.tasks.fine_tuning import FineTuning, check_start, fit

PRESETS = {
    "small": FineTuning(epochs=6, batch_size=4, max_length=32),
    "spanbert": FineTuning(max_length=32),
}


def read(*paths) -> list:
    """(sentence, None), label of each line `label<tab>sentence`."""
    found = []
    for path in paths:
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
            label, tab, sentence = line.partition("\t")
            if not tab:
                raise InputError(
                    f"{path}, line {number}: there is no tab; write label, tab, sentence."
                )
            found.append(((sentence, None), label))
    return found


def fine_tune(encoder, wordpiece, examples, settings, snapshots=None):
    check_start(encoder, wordpiece, settings)
    data = classification.ClassificationData(examples, wordpiece, settings)
    kinds = len(data.labels)
    model, history = fit(
        lambda: classification.ClassificationModel(encoder, kinds), data, settings, snapshots
    )
    return Labeller(model, wordpiece, data.labels), history


def score(examples, predictions) -> dict:
    right = [label == said for (_, label), said in zip(examples, predictions, strict=True)]
    return {"accuracy": sum(right) / len(right)}


class Labeller:
    def __init__(self, model, wordpiece, labels):
        self.model, self.wordpiece, self.all_labels = model.eval(), wordpiece, labels

    @classmethod
    def from_pretrained(cls, source, tokenizer=None):
        found = task_checkpoints.load(source, "labels", tokenizer)
        model = classification.ClassificationModel(found.encoder, len(found.facts["labels"]))
        task_checkpoints.fill(model, found.head, source)
        return cls(model, found.wordpiece, found.facts["labels"])

    def predict(self, examples):
        sentences = [sentences for sentences, _ in examples]
        scores = classification.all_scores(self.model, self.wordpiece, sentences, 32)
        return [self.all_labels[best] for best in scores.argmax(-1).tolist()]

    def save(self, folder, texts):
        task_checkpoints.save(
            folder, "labels", self.model, {"labels": self.all_labels}, self.wordpiece, texts
        )
