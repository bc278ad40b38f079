"""Statistics of CSV."""

import csv
import io
import statistics
from dataclasses import dataclass

from tabulate import tabulate
from tenon import ToolError, tool


@dataclass
class Column:
    """A column of numbers.

    Attributes:
        name: Its header.
        mean: The mean of its values.
    """

    name: str
    count: int
    mean: float
    greatest: float


def columns(text: str) -> list[Column]:
    """The columns of a CSV text whose values are numbers."""
    rows = list(csv.DictReader(io.StringIO(text)))
    found = []
    for name in rows[0] if rows else []:
        try:
            values = [float(row[name]) for row in rows]
        except ValueError:
            continue
        found.append(Column(name, len(values), statistics.fmean(values), max(values)))
    return found


@tool(read_only=True)
def summary(text: str) -> list[Column]:
    """Sums up the numbers of a CSV text."""
    found = columns(text)
    if not found:
        raise ToolError("the text has no column of numbers")
    return found


@tool(read_only=True)
def table(text: str) -> str:
    """Shows a CSV text as a table."""
    return tabulate(list(csv.reader(io.StringIO(text))), headers="firstrow")
