"""A scripted host, for tests of a plugin's functions: natively, with `unittest` or pytest.

A test says what the host grants and how it answers, calls a function, and looks at what came of it.
Whatever is not scripted is answered as by a host that did not grant it.

```python
from tenon.testing import Host

host = Host(config={"word": "Ciao"})
result = host.call_tool(greet, {"name": "Ada"})    # by JSON, as a host calls it
assert result.text == "Ciao, Ada!"

with host:                                          # or as a plain function
    assert greet("Ada") == "Ciao, Ada!"
```

What it cannot show is how the component behaves under the grants and limits of a real host.
"""

from ..http import Request
from ..user import CANCELLED, DECLINED, accepted
from .host import Host, LogLine, ProgressReport, SentMessage
from .web import WebAnswer

__all__ = [
    "CANCELLED",
    "DECLINED",
    "Host",
    "LogLine",
    "ProgressReport",
    "Request",
    "SentMessage",
    "WebAnswer",
    "accepted",
]
