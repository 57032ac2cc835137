"""What a linear probe reads from the states of a frozen encoder. Shapes: B batch, n sequence, H
hidden, L layers, t rows. Page: `book/evidence/spans_and_boundaries`."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from spanbert_tutorial.bert.encoder import BertEncoder


@torch.no_grad()
def layer_states(
    encoder: BertEncoder, ids: Tensor, allowed: Tensor, segments: Tensor | None = None
) -> list[Tensor]:
    """The states [B,n,H] below the first layer and after each layer: L + 1 of them. allowed: bool
    [B,n,n]."""
    states = [encoder.embeddings(ids, segments)]
    for layer in encoder.layers:
        states.append(layer(states[-1], allowed[:, None]))
    return states


def linear_probe(train_x: Tensor, train_y: Tensor, penalty: float = 1e-3) -> nn.Linear:
    """Multinomial logistic regression on standardized columns, fitted to the end; returned for raw
    columns [.,H].

    penalty: half the factor of the squared weights beside the mean loss."""
    mean = train_x.mean(dim=0)
    deviation = train_x.std(dim=0) + 1e-6
    x = (train_x - mean) / deviation
    classes = int(train_y.max()) + 1
    layer = nn.Linear(x.shape[1], classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(layer(x), train_y) + penalty * layer.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        layer.weight /= deviation
        layer.bias.sub_(layer.weight @ mean)
    return layer


def accuracy(probe: nn.Linear, states: Tensor, labels: Tensor) -> float:
    """Share of the rows [t,H] for which the probe's highest score is at the label."""
    return (probe(states).argmax(dim=-1) == labels).double().mean().item()
