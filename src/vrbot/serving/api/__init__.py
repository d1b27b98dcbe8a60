"""The desk over HTTP: REST under /api/v1, a part of OpenAI's API under /v1, health, metrics, sign-in."""
