"""Language models that the plugin provides."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, TypeVar

from . import _run
from ._errors import DefinitionError, Error, ErrorCode
from ._failure import to_error
from ._registry import Contribution, attach
from ._signature import Signature
from ._source import caller, mistake, place
from ._types.base import shown
from .content import Text
from .models import Completion, CompletionRequest, ModelInfo

F = TypeVar("F", bound=Callable[..., Any])


class Model(Contribution):
    """A function that answers requests, and the models that it answers for."""

    kind = "model"

    def __init__(self, function: Callable[..., Any], provider: "Provider", models: Any, name: str) -> None:
        super().__init__(function, name)
        self.provider, self.given = provider, models
        self.signature = Signature(function, self.what, first=1)
        if not self.signature.leading or self.signature.parameters.members:
            raise mistake(
                function,
                f"the {self.what} has other parameters than the request",
                f"write `def {function.__name__}(request: CompletionRequest):`",
            )

    def models(self) -> list[ModelInfo]:
        """The models there are now."""
        try:
            found = list(_run.call(self.given) if callable(self.given) else self.given)
            for one in found:
                if not isinstance(one, ModelInfo):
                    file, line = place(self.given) if callable(self.given) else place(self.function)
                    raise Error(
                        ErrorCode.FAILED,
                        f'the models of the provider "{self.provider.name}" have {shown(one)}, which is no ModelInfo ({file}:{line})'
                        "\n  hint: list `ModelInfo(\"NAME\")`",
                    )
            return [dataclasses.replace(one, provider=self.provider.name) for one in found]
        except Exception as exception:
            raise to_error(exception) from exception

    def complete(self, request: CompletionRequest) -> Completion:
        """Answers a request.

        Raises:
            Error: If it cannot.
        """
        try:
            returned = self.signature.call([request], {})
        except Exception as exception:
            raise to_error(exception) from exception
        if isinstance(returned, str):
            returned = Completion([Text(returned)])
        if not isinstance(returned, Completion):
            file, line = place(self.function)
            raise Error(
                ErrorCode.FAILED,
                f"the {self.what} returned something else than an answer: expected text or a Completion, got "
                f"{type(returned).__name__} ({file}:{line} in {self.function.__name__})"
                "\n  hint: return a str, or `Completion([…])`",
            )
        return dataclasses.replace(returned, model=returned.model or request.model)


#: All providers that the source makes, for what has no models.
PROVIDERS: "list[Provider]" = []


class Provider:
    """A provider of language models. `tenon.provider(…)` makes one."""

    def __init__(self, name: str, description: str) -> None:
        self.name, self.description = name, description
        self.file, self.line = caller()
        PROVIDERS.append(self)

    def model(self, id: str, **about: Any) -> Callable[[F], F]:
        """Makes a function answer the requests to one model.

        It takes the `CompletionRequest` and returns text or a `Completion`.

        Args:
            id: The name by which requests choose the model.
            about: What else `ModelInfo` says of it.
        """

        info = ModelInfo(id, **about)

        def decorate(function: F) -> F:
            attach("model", function, lambda: Model(function, self, [info], id))
            return function

        return decorate

    def models(self, list: Callable[[], Any]) -> Callable[[F], F]:
        """Makes a function answer the requests to models that are listed at run time.

        Args:
            list: A function that returns the `ModelInfo` of each model there is now.
        """

        def decorate(function: F) -> F:
            attach("models", function, lambda: Model(function, self, list, function.__name__))
            return function

        return decorate


def provider(name: str, description: str) -> Provider:
    """A provider of language models, whose methods decorate what answers.

    Args:
        name: Its name, unique in the plugin.
        description: What it is, in a sentence.
    """
    return Provider(name, description)


def without_models(models: list[Model]) -> list[DefinitionError]:
    """The providers for which no function answers."""
    return [
        DefinitionError(
            f'the provider "{one.name}" has no models',
            hint='write `@NAME.model("…")` above a function that answers, where NAME is the variable of the provider',
            file=one.file,
            line=one.line,
        )
        for one in PROVIDERS
        if all(model.provider is not one for model in models)
    ]


def providers(models: list[Model]) -> list[Provider]:
    """The providers that have models, each once."""
    return list({one.provider.name: one.provider for one in models}.values())


def complete(models: list[Model], request: CompletionRequest) -> Completion:
    """Answers a request by the function that has its model.

    Raises:
        Error: With `not-found`, if no function has it.
    """
    for one in models:
        if any(info.id == request.model for info in one.models()):
            return one.complete(request)
    raise Error(ErrorCode.NOT_FOUND, f'this plugin has no model "{request.model}"')
