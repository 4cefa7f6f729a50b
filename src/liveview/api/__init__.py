"""The routes of the JSON API, its OpenAPI document, and the stream."""
