"""What somebody adds who reads "How to add a task chapter": a task, here two labels for a
sentence."""

from pathlib import Path

from spanbert_tutorial.errors import InputError
from spanbert_tutorial.tasks import classification
from spanbert_tutorial.tasks.fine_tuning import FineTuning
from spanbert_tutorial.tasks.task_checkpoints import Predictor

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


def score(examples, predictions) -> dict:
    right = [label == said for (_, label), said in zip(examples, predictions, strict=True)]
    return {"accuracy": sum(right) / len(right)}


class Labeller(Predictor):
    task = "labels"
    data = classification.ClassificationData

    @staticmethod
    def new_model(encoder, facts):
        return classification.ClassificationModel(encoder, len(facts["labels"]))

    def predict(self, examples):
        inputs = [classification.Framed.of(one, self.wordpiece, 32) for one, _ in examples]
        return [self.facts["labels"][int(row.argmax())] for row in self.logits(inputs)]


fine_tune = Labeller.fine_tune
