"""Put this folder on PYTHONPATH, and Python starts as on a processor without bfloat16: trainings
then run in float32 (`make other-arithmetic`)."""

import torch

torch.cpu._is_avx512_bf16_supported = lambda: False
