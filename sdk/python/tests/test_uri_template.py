"""URI templates: what matches, what is expanded, and what is none."""

from __future__ import annotations

import unittest

import support  # noqa: F401
from tenon._uri_template import TemplateError, UriTemplate

#: Template, URI, values.
MATCHES = [
    ("notes://{name}", "notes://a%20b", {"name": "a b"}),
    ("notes://{name}", "notes://a/b", None),
    ("files://{+path}", "files://a/b", {"path": "a/b"}),
    ("notes://{a}/{b}", "notes://1/2", {"a": "1", "b": "2"}),
    ("notes://{a,b}", "notes://1,2", {"a": "1", "b": "2"}),
    ("notes://x{/a,b}", "notes://x/1/2", {"a": "1", "b": "2"}),
    ("notes://x{?a,b}", "notes://x?b=2", {"b": "2"}),
    ("notes://x{?a,b}", "notes://x", {}),
    ("notes://x{?a}", "notes://x?c=2", None),
    ("notes://x{.end}", "notes://x.md", {"end": "md"}),
    ("notes://x{#part}", "notes://x#top", {"part": "top"}),
    ("notes://all", "notes://all", {}),
]

BAD = [
    ("notes/{a}", "has no scheme"),
    ("notes://{a", "without its counterpart"),
    ("notes://{a*}", "stands for many values"),
    ("notes://{a:3}", "stands for many values or a part"),
    ("notes://{a}{b}", "without a text between"),
    ("notes://{a}/{a}", "a variable twice"),
    ("notes://{1}", "no name of a variable"),
]


class UriTemplates(unittest.TestCase):
    def test_a_uri_matches_and_is_made_again(self) -> None:
        for text, uri, values in MATCHES:
            with self.subTest(f"{text} {uri}"):
                template = UriTemplate(text)
                self.assertEqual(template.match(uri), values)
                if values is not None:
                    self.assertEqual(template.expand(values), uri)

    def test_a_text_that_is_none_is_refused(self) -> None:
        for text, said in BAD:
            with self.subTest(text), self.assertRaisesRegex(TemplateError, said):
                UriTemplate(text)

    def test_values_that_do_not_fit_are_refused(self) -> None:
        with self.assertRaisesRegex(TemplateError, '"a" of "n:{a}" has no value'):
            UriTemplate("n:{a}").expand({})
        with self.assertRaisesRegex(TemplateError, 'no variable "b"'):
            UriTemplate("n:{a}").expand({"b": 1})


if __name__ == "__main__":
    unittest.main()
