"""What crosses a wire: HTTP bodies, data channels, and the pipes between front door and worker.

Read base.py (rules of all models), keys.py, command.py and status.py (data channels), http.py (the
API), worker.py (front door and worker), framing.py (bytes), schema.py (what the page's types are
made of). Knows nothing of sessions' rules, transports or models.
"""
