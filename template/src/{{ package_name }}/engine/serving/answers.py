"""What a request gets back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import HTTPException, Response
from fastapi.responses import JSONResponse
from numpy.typing import NDArray


class Answers:
    """Makes the answer of probabilities `[N, classes]`: for each image its class and all probabilities."""

    def __init__(self, class_names: Sequence[str]) -> None:
        self.class_names = list(class_names)

    def __call__(self, probabilities: NDArray[np.float32]) -> Response:
        if not np.isfinite(probabilities).all():
            raise HTTPException(422, "the network gives no finite numbers for these images")
        predictions: list[dict[str, Any]] = [
            {
                "class": self.class_names[int(row.argmax())],
                "probability": float(row.max()),
                "probabilities": row.tolist(),
            }
            for row in probabilities
        ]
        return JSONResponse({"classes": self.class_names, "predictions": predictions})
