"""A tensor network whose indices are two-valued variables, each shared by any number of factors (a hyperedge)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Factor:
    """One table of the network.

    Attributes:
        table: number of the table that holds the entries; equal numbers mean equal entries.
        scope: the variables of the table's axes, in the order of its axes.
        batched: whether the entries depend on the sample of a batch.
        sign: for a folded network, F(not x) = sign F(x): +1 or -1. The table then holds the half with its earliest
            summed variable at 0, and must not depend on which variable that is (a function of parities is safe).
    """

    table: int
    scope: tuple[int, ...]
    batched: bool = False
    sign: int = 1


@dataclass(frozen=True)
class Network:
    """A scalar as a sum over all values of all variables of a product of factors.

    Attributes:
        variables: number of two-valued variables, numbered from 0.
        factors: the tables.
        halved: variables whose sum carries a factor 1/2.
        priority: for each variable, who goes first among equally good ones; alike for alike networks.
        folded: whether flipping every variable changes each factor by its sign only (Z2 symmetry), so that half of
            each table suffices.
    """

    variables: int
    factors: tuple[Factor, ...]
    halved: frozenset[int] = frozenset()
    priority: tuple[float, ...] = ()
    folded: bool = False
