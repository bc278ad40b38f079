"""Python types as JSON: the schema of a type, its values made from JSON, and JSON made from them."""

from .base import Adapter, Mismatch, Unsupported, root_schema
from .resolve import adapter_of

__all__ = ["Adapter", "Mismatch", "Unsupported", "adapter_of", "root_schema"]
