"""A graph comes through its file whole, and what a cut has no meaning for is refused with its line."""

from pathlib import Path

import networkx as nx
import pytest

from qaoa_source.graph_files import read_graph
from qaoa_source.problem import Edge, GraphError, random_problem
from tests.jobs.qaoa.conftest import SOURCE


@pytest.mark.parametrize(("nodes", "edges"), [(18, 24), (24, 36)])
def test_shipped_graphs_are_the_documented_ones(nodes: int, edges: int) -> None:
    problem = read_graph(SOURCE / "inputs" / f"gnm_{nodes}_{edges}.adjlist")
    assert problem == random_problem(nodes, edges, seed=1967)
    assert problem.labels == tuple(range(nodes))
    assert 15 not in problem.pairs, "node 15 has no edge and is part of the problem all the same"


def test_formats_of_networkx(tmp_path: Path) -> None:
    graph = nx.gnm_random_graph(9, 12, seed=3)
    plain = tmp_path / "plain.adjlist"
    nx.write_adjlist(graph, plain)
    for index, (first, second) in enumerate(graph.edges):
        graph.edges[first, second]["weight"] = 0.5 + index
    edge_list, graphml = tmp_path / "weighted.edgelist", tmp_path / "weighted.graphml"
    nx.write_edgelist(graph, edge_list)
    nx.write_graphml(graph, graphml)
    expected = {(*sorted(pair), data["weight"]) for *pair, data in graph.edges(data=True)}
    weighted = read_graph(graphml)
    assert {(edge.first, edge.second, edge.weight) for edge in weighted.edges} == expected
    assert weighted.nodes == 9
    assert [(edge.first, edge.second) for edge in read_graph(plain).edges] == [
        (edge.first, edge.second) for edge in weighted.edges
    ]
    if not list(nx.isolates(graph)):
        assert read_graph(edge_list) == weighted


def test_edge_list_has_weights_and_isolated_nodes(tmp_path: Path) -> None:
    file = tmp_path / "g.edgelist"
    file.write_text("# comment\n10 2 0.5\n2 7 {'weight': -1}\n7 10\n3\n")
    problem = read_graph(file)
    assert problem.labels == (2, 3, 7, 10)
    assert problem.edges == (Edge(0, 2, -1.0), Edge(0, 3, 0.5), Edge(2, 3, 1.0))


def test_names_may_be_text(tmp_path: Path) -> None:
    file = tmp_path / "g.adjlist"
    file.write_text("b a\nc\n")
    problem = read_graph(file)
    assert problem.labels == ("a", "b", "c")


GRAPHML = """<?xml version="1.0"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<graph edgedefault="{kind}">
<node id="a"/><node id="b"/>
<edge source="a" target="b"/>
<edge source="{source}" target="a"/>
</graph></graphml>
"""


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.adjlist", "0 1\n1 1\n", "g.adjlist, line 2: node 1 has an edge to itself"),
        ("g.adjlist", "0 1\n\n1 0\n", "g.adjlist, line 3: edge 1 - 0 is already given in line 1"),
        ("g.adjlist", "0\n1\n", "g.adjlist: the graph has 2 nodes and no edge"),
        ("g.adjlist", "1 2\n01 3\n", "two node names are the same number"),
        ("g.edgelist", "0 1 heavy\n", "g.edgelist, line 1: 'heavy' is no weight"),
        ("g.edgelist", "0 1 2 3\n", "g.edgelist, line 1: '2 3' is no weight"),
        ("g.edgelist", "0 1 1e999\n", "g.edgelist, line 1: edge 0 - 1 has weight inf"),
        ("g.edgelist", "0 1 True\n", "'True' is no weight"),
        ("g.graphml", GRAPHML.format(kind="undirected", source="a"), "g.graphml, line 6: node a has an edge to itself"),
        ("g.graphml", GRAPHML.format(kind="undirected", source="b"), "line 6: edge a - b is already given in line 5"),
        ("g.graphml", GRAPHML.format(kind="directed", source="b"), "the graph is directed"),
        ("g.graphml", "<graphml>", "g.graphml, line 1:"),
        ("g.csv", "0,1\n", "'.csv' is no known graph format. Use one of .adjlist"),
    ],
)
def test_what_cannot_be_cut_is_refused_with_its_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(GraphError) as error:
        read_graph(file)
    assert message in str(error.value)
