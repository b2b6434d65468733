"""LingBot-World-Fast: image, prompt and keys in, video out, chunk by chunk.

Read config.py (shapes), control.py (keys → tensor), dit.py with kv_cache.py and rope.py (the
model), sampler.py and denoise.py (one chunk), vae.py and condition.py (pixels ↔ latents),
text_encoder.py (prompt), then checkpoint.py, weights.py and fetch.py (files). SPEC is the published
architecture in our words; `docs/guide/lingbot.md` draws it. All streaming state is passed in and
handed back. Knows nothing of sessions, leases, transports or the server.
"""
