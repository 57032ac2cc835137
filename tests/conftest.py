"""What several test files share: sums on the CPU in float32."""

import pytest
from accelerate.state import AcceleratorState


@pytest.fixture
def on_the_processor(monkeypatch):
    """Accelerate takes a graphics card where there is one; numbers are compared on the CPU in
    float32."""
    AcceleratorState._reset_state(reset_partial_state=True)
    monkeypatch.setattr("spanbert_tutorial.engine.device.precision", lambda: "no")
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setenv("SPANBERT_TUTORIAL_STATIC", "1")
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
