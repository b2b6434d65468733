"""The embedded world's training: its true picture, the recipe, and the judge.

`python -m training.tiny.train --minutes 48 --decay 0.8` trains from scratch, `python -m
training.tiny.evaluate` measures likeness, motion and speed, `python -m training.tiny.starts` draws
the start pictures. docs/guide/tiny.md tells the whole of it.

Read landscape.py, solids.py and truth.py (the true picture), poses.py (where to look), train.py
(the recipe), judge.py and flow.py (what is measured), evaluate.py (all of it).
Needs numba, which the service does not.
"""
