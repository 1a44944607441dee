"""Reads a graph from a job's input channel: adjacency list, edge list or GraphML."""

import ast
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.parsers import expat

import networkx as nx

from qaoa_source.problem import GraphError, Label, MaxCutProblem, problem_from_edges

EXAMPLE_WEIGHT = "Write a finite number, for example 0 1 2.5"


class _Collector:
    """Gathers nodes and edges with the line each edge came from, and refuses what Max-Cut has no meaning for."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._nodes: dict[str, None] = {}
        self._edges: dict[frozenset[str], tuple[str, str, float]] = {}
        self._lines: dict[frozenset[str], int] = {}

    def refuse(self, line: int, problem: str) -> GraphError:
        return GraphError(f"{self._file.name}, line {line}: {problem}")

    def node(self, name: str) -> None:
        self._nodes[name] = None

    def edge(self, line: int, first: str, second: str, weight: float = 1.0) -> None:
        if first == second:
            raise self.refuse(line, f"node {first} has an edge to itself, which no cut can contain. Remove it.")
        if not math.isfinite(weight):
            raise self.refuse(line, f"edge {first} - {second} has weight {weight}. {EXAMPLE_WEIGHT}.")
        key = frozenset((first, second))
        if key in self._edges:
            before = self._lines[key]
            raise self.refuse(
                line,
                f"edge {first} - {second} is already given in line {before}. Keep one, with the sum as its weight.",
            )
        self.node(first)
        self.node(second)
        self._edges[key] = (first, second, weight)
        self._lines[key] = line

    def problem(self) -> MaxCutProblem:
        # Integer labels sort as numbers, so that wire k of the documented graphs is node k.
        all_integers = all(_is_integer(name) for name in self._nodes)
        label: Callable[[str], Label] = int if all_integers else str
        if all_integers and len({int(name) for name in self._nodes}) < len(self._nodes):
            raise GraphError(f"{self._file.name}: two node names are the same number. Write each node in one way.")
        edges = [(label(first), label(second), weight) for first, second, weight in self._edges.values()]
        try:
            return problem_from_edges([label(name) for name in self._nodes], edges)
        except GraphError as error:
            raise GraphError(f"{self._file.name}: {error}") from None


def _is_integer(name: str) -> bool:
    return name.removeprefix("-").isascii() and name.removeprefix("-").isdigit()


def _content_lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise GraphError(
            f"{file.name}: not UTF-8 text ({error.reason} at byte {error.start}). Save it as UTF-8."
        ) from None
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip()
        if content:
            yield number, content


def _read_adjacency_list(file: Path) -> MaxCutProblem:
    """`node neighbour neighbour ...`, as networkx.write_adjlist writes it."""
    collector = _Collector(file)
    for number, content in _content_lines(file):
        node, *neighbours = content.split()
        collector.node(node)
        for neighbour in neighbours:
            collector.edge(number, node, neighbour)
    return collector.problem()


def _read_edge_list(file: Path) -> MaxCutProblem:
    """`node node`, `node node weight` or `node node {'weight': 2.5}`; a line with one node is a node without edges."""
    collector = _Collector(file)
    for number, content in _content_lines(file):
        node, *rest = content.split(None, 2)
        collector.node(node)
        if rest:
            weight = _weight_of(collector, number, rest[1]) if len(rest) == 2 else 1.0
            collector.edge(number, node, rest[0], weight)
    return collector.problem()


def _weight_of(collector: _Collector, number: int, text: str) -> float:
    try:
        data = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise collector.refuse(number, f"{text!r} is no weight. {EXAMPLE_WEIGHT}.") from None
    weight = data.get("weight", 1.0) if isinstance(data, dict) else data
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise collector.refuse(number, f"{text!r} is no weight. {EXAMPLE_WEIGHT}.")
    return float(weight)


def _read_graphml(file: Path) -> MaxCutProblem:
    """GraphML as networkx reads it; edge attribute `weight` where there is one."""
    lines = _graphml_edge_lines(file)
    try:
        graph = nx.read_graphml(file)
    except (nx.NetworkXError, ValueError) as error:
        raise GraphError(f"{file.name}: {error}. Write it with networkx.write_graphml.") from error
    if graph.is_directed():
        raise GraphError(f"{file.name}: the graph is directed, a cut is not. Save it as an undirected graph.")
    collector = _Collector(file)
    for node in graph.nodes:
        collector.node(str(node))
    seen: dict[frozenset[str], int] = {}
    for first, second, data in graph.edges(data=True):
        key = frozenset((str(first), str(second)))
        which = seen.get(key, 0)
        seen[key] = which + 1
        number = lines[key][which] if which < len(lines.get(key, [])) else 0
        weight = data.get("weight", 1.0)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise collector.refuse(number, f"edge {first} - {second} has weight {weight!r}. Declare it as a double.")
        collector.edge(number, str(first), str(second), float(weight))
    return collector.problem()


def _graphml_edge_lines(file: Path) -> dict[frozenset[str], list[int]]:
    """The line numbers of each edge element, which networkx doesn't keep."""
    lines: dict[frozenset[str], list[int]] = {}
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        if name.rpartition(":")[2] == "edge":
            key = frozenset((attributes.get("source", ""), attributes.get("target", "")))
            lines.setdefault(key, []).append(parser.CurrentLineNumber)

    parser.StartElementHandler = start
    try:
        parser.Parse(file.read_bytes(), True)
    except expat.ExpatError as error:
        raise GraphError(
            f"{file.name}, line {error.lineno}: {expat.ErrorString(error.code)}. Repair the XML."
        ) from None
    return lines


READERS: dict[str, Callable[[Path], MaxCutProblem]] = {
    ".adjlist": _read_adjacency_list,
    ".edgelist": _read_edge_list,
    ".edges": _read_edge_list,
    ".graphml": _read_graphml,
}


def read_graph(file: Path) -> MaxCutProblem:
    """Reads a graph file; its suffix says the format: .adjlist, .edgelist (or .edges), .graphml.

    Raises:
        GraphError: Unknown suffix, unreadable line, self loop, duplicate edge, weight that is no number, or no edge.
    """
    reader = READERS.get(file.suffix.lower())
    if reader is None:
        raise GraphError(f"{file.name}: {file.suffix!r} is no known graph format. Use one of {', '.join(READERS)}.")
    return reader(file)


def read_channel(channel: Path) -> MaxCutProblem:
    """Reads the one graph file that an input channel holds.

    Raises:
        GraphError: The channel doesn't hold exactly one file, or its file can't be used.
    """
    files = sorted(path for path in channel.rglob("*") if path.is_file()) if channel.is_dir() else []
    if len(files) != 1:
        names = ", ".join(path.name for path in files) or "no file"
        raise GraphError(f"input channel {channel.name!r} holds {names}. Give it one graph file.")
    return read_graph(files[0])
