"""The service: one explainer over HTTP, with a page for caseworkers; ``docs/service.md`` has the endpoints.

The process that listens knows no model: it checks requests and hands them to worker processes, each of which has read the model once.
"""
