"""Cuts are what they are said to be: sampled from the final state, optimal, or found classically."""

import numpy as np
import pytest
from hypothesis import given, settings

from qaoa_source import cuts
from qaoa_source.problem import MaxCutProblem, problem_from_edges, random_problem
from tests.jobs.qaoa import oracle


@pytest.mark.parametrize(("nodes", "edges", "best"), [(18, 24, 21), (24, 36, 31)])
def test_optimum_of_the_documented_graphs(nodes: int, edges: int, best: int) -> None:
    assert cuts.optimum(random_problem(nodes, edges, 1967)) == best


@settings(max_examples=100, deadline=None)
@given(problem=oracle.problems(most_nodes=9))
def test_optimum_and_local_search_against_every_bit_string(problem: MaxCutProblem) -> None:
    best = oracle.cut_of_every_bit_string(problem).max()
    assert cuts.optimum(problem) == pytest.approx(best, abs=1e-12)
    assert cuts.upper_bound(problem) >= best - 1e-12
    found = cuts.local_search(problem, np.zeros((1, problem.nodes), dtype=np.bool_))
    assert found.value <= best + 1e-12
    assert problem.cut_values(found.bits[np.newaxis])[0] == found.value


def test_high_bits_of_the_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(10, 20, 5)
    best = cuts.optimum(problem)
    monkeypatch.setattr(cuts, "_LOW_BITS", 3)
    assert cuts.optimum(problem) == best == oracle.cut_of_every_bit_string(problem).max()


def test_component_too_large_has_a_bound_only() -> None:
    ring = problem_from_edges(range(40), [(node, (node + 1) % 40, 1.0) for node in range(40)])
    assert cuts.optimum(ring) is None
    assert cuts.upper_bound(ring) == 40


def test_forest_of_correlations_cuts_a_tree_exactly() -> None:
    tree = problem_from_edges(range(6), [(0, 1, 1.0), (1, 2, 1.0), (1, 3, -1.0), (4, 5, 2.0)])
    cut = cuts.from_correlations(tree, np.array([-0.9, -0.5, 0.4, -0.2]))
    assert cut.value == 4
    assert cut.partition == "010101" or tree.cut_values(cut.bits[np.newaxis])[0] == 4
