"""The experiment on an untrained second segment: what the encoder is told, and a toy run."""

from copy import deepcopy

import torch

from research.experiments import one_segment
from spanbert_tutorial.engine.files import data_path
from spanbert_tutorial.pretraining.checkpoints import load_checkpoint


def tiny(name="spanbert-tiny", seed=0):
    model, wordpiece = load_checkpoint(data_path("checkpoints", "spanbert-tiny"))[:2]
    return model.encoder.eval(), wordpiece


@torch.no_grad()
def test_every_token_gets_segment_0_also_in_a_copy():
    ids, segments = torch.tensor([[2, 50, 3, 60, 3]]), torch.tensor([[0, 0, 0, 1, 1]])
    encoder, _ = tiny()
    two = encoder(ids, token_type_ids=segments)
    zeros = encoder(ids, token_type_ids=torch.zeros_like(segments))
    one = deepcopy(one_segment.in_one_segment(encoder))(ids, token_type_ids=segments)
    assert one.equal(zeros) and not one.allclose(two, atol=1e-3)
