#!/usr/bin/env bash
# Renews requirements/lock.txt from pyproject.toml (needs uv). torch and what it pulls on Linux (CUDA
# wheels, pinned exactly by torch itself) stay out: `make setup` installs torch in a step of its own,
# so that TORCH_INDEX_URL can name another build of it.
set -euo pipefail
cd "$(dirname "$0")/.."
skip=()
for name in torch triton cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas nvidia-cuda-cupti \
  nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand \
  nvidia-cusolver nvidia-cusparse nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink \
  nvidia-nvshmem-cu13 nvidia-nvtx; do
  skip+=(--no-emit-package "$name")
done
uv pip compile pyproject.toml --extra dev --extra livekit --universal --python-version 3.11 \
  --no-header --no-annotate --quiet "${skip[@]}" "$@" -o requirements/lock.txt
