"""The embedded world: a neural rendering of one known place, in real time on an ordinary CPU.

It has the three stages and the streaming shape of large world models, and is never presented as
one: motion is dead reckoning over a given map, only the look is learned (docs/guide/tiny.md).

Reading order: place.py (the map), motion.py and controls.py (how keys move the player), scene.py
with geometry.py and networks.py (the model as trained), renderer.py and decoder.py (the same,
faster), states.py, stages.py, warm_up.py, world.py (what the service sees).
Knows nothing of training, of the true renderer, or of who plays.
"""
