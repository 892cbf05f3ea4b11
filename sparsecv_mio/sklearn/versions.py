"""What differs between scikit-learn 1.5 and 1.9: checking data, callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.utils.validation import validate_data as validate_data
except ImportError:  # before 1.6

    def validate_data(_estimator: Any, /, *args: Any, **checks: Any) -> Any:
        """Check data, and remember or compare the columns."""
        return _estimator._validate_data(*args, **checks)


try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Return the method."""
        return method
