"""The OpenAPI document of a service: what `/openapi.json` holds and `/docs` shows."""

from typing import Any

from .facts import Facts
from .inputs import FIELD, Limits, array_shape

REFUSALS = {
    400: "the body is no JSON or no form, or it ended early",
    408: "the request did not arrive in time",
    413: "the body is too large, or holds too many images",
    415: "the media type is none of these",
    422: "a file is no image, or an array has another shape or other values",
    500: "the network failed",
    503: "too many requests at the same time",
    504: "there was no answer in time",
}


def document(title: str, facts: Facts, limits: Limits) -> dict[str, Any]:
    """Describes the endpoints for a network."""
    class_names = facts.class_names
    pixels: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": 255}
    for size in reversed(array_shape(facts.shape)):
        pixels = _array(pixels, size, size)
    file = {"type": "string", "format": "binary"}
    body = {
        "application/json": {"schema": _object({FIELD: _array(pixels, 1, limits.images)})},
        "multipart/form-data": {"schema": _object({FIELD: _array(file, 1, limits.images)})},
        "image/*": {"schema": file},
        "application/octet-stream": {"schema": file},
    }
    share = {"type": "number", "minimum": 0, "maximum": 1}
    prediction = _object(
        {
            "class": {"type": "string", "enum": class_names},
            "probability": share,
            "probabilities": _array(share, len(class_names), len(class_names)),
        }
    )
    predictions = _object(
        {"classes": _array({"type": "string"}, len(class_names), len(class_names)), "predictions": _array(prediction)}
    )
    refused = {"application/json": {"schema": _object({"detail": {"type": "string"}})}}
    answers = {"200": {"description": "a prediction for each image", "content": {"application/json": {"schema": predictions}}}}
    answers |= {str(status): {"description": reason, "content": refused} for status, reason in REFUSALS.items()}
    text = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "paths": {
            "/predict": {
                "post": {
                    "summary": f"Classifies images; a body holds at most {limits.body:,} bytes",
                    "requestBody": {"required": True, "content": body},
                    "responses": answers,
                }
            },
            "/healthz": {
                "get": {
                    "summary": "Whether all workers are ready",
                    "responses": {"200": {"description": "they are", **text}, "503": {"description": "not all", **text}},
                }
            },
            "/metrics": {
                "get": {"summary": "What Prometheus reads", "responses": {"200": {"description": "metrics", **text}}}
            },
        },
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _array(items: dict[str, Any], least: int = 0, most: int | None = None) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least} | ({} if most is None else {"maxItems": most})
