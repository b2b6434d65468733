import json

import pytest
import torch

from benchmarks.micro.lingbot_gpu import main


def test_the_benchmark_walks_all_its_stages_at_toy_size(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tiny", "--no-compile"])
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert line["tiny"] is True
    figures = line["lingbot_gpu"]
    stages = ("prompt", "image_prefix", "first_chunk", "chunk")
    assert all(figures[f"{stage}_seconds"] > 0 for stage in stages)
    assert figures["compute_fps"] > 0
    assert figures["roofline_share"] > 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_it_says_not_run_and_computes_the_published_sizes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main([])
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert line["lingbot_gpu"] == "not run"
    sizes = line["computed"]  # SPEC §7
    assert sizes["dit_parameters"] == 18_544_332_864
    assert sizes["cache_gb"] == pytest.approx(25.9, abs=0.05)
    assert sizes["decoder_state_gb"] == pytest.approx(3.65, abs=0.01)
    assert sizes["encoder_state_gb"] == pytest.approx(2.17, abs=0.01)
