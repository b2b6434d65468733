"""Benchmarks of single parts: `python -m benchmarks.micro.hop`, and likewise the others."""
