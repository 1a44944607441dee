"""Write the expectation value of a Pauli word as a network, from the measurement back to the initial state.

Going back, each wire is absent (the measured operator is the identity there), diagonal (its ket and bra bits are one
variable), or full (two variables). A gate whose target wires are all absent and whose control wires are absent or
diagonal commutes with the operator and cancels against its conjugate; a diagonal gate is a gate without targets. A
control or a phase reads its wire's variable and makes no new one: its variable is a hyperedge of the network.
"""

from dataclasses import dataclass

from contraction.circuit import Circuit, Gate, PauliWord
from contraction.network import Factor, Network


@dataclass(frozen=True)
class TableSource:
    """Where the entries of a network's table come from.

    Attributes:
        name, wires, parameters, adjoint: of the gate, as in circuit.Gate.
        controls: values of the controls at which it acts, one axis each before the gate's own axes.
    """

    name: str
    wires: int
    parameters: tuple[int, ...] = ()
    adjoint: bool = False
    controls: tuple[bool, ...] = ()


@dataclass(frozen=True)
class TableView:
    """A table with the axes at wires in state |0> cut away: of a source, conjugated for the bra.

    Attributes:
        source: number of the source.
        conjugate: whether it stands on the bra's side.
        axes: number of axes of the full table.
        free: the axes that are left; the others are at 0.
    """

    source: int
    conjugate: bool
    axes: int
    free: tuple[int, ...]


class TableRegister:
    """Numbers the sources and views of a circuit, equal ones once."""

    def __init__(self) -> None:
        self.sources: dict[TableSource, int] = {}
        self.views: dict[TableView, int] = {}

    def view(self, source: TableSource, *, conjugate: bool, axes: int, free: tuple[int, ...]) -> int:
        """Number of a view."""
        number = self.sources.setdefault(source, len(self.sources))
        return self.views.setdefault(TableView(number, conjugate, axes, free), len(self.views))


def word_network(circuit: Circuit, word: PauliWord, register: TableRegister) -> Network:
    """The network of <0| U+ W U |0> for one word W.

    Args:
        circuit: gates, and which parameters are batched.
        word: the Pauli word.
        register: takes the tables that the network refers to.
    """
    cone = _Cone()
    for wire, pauli in word:
        if pauli == "Z":
            cone.place(TableSource("PauliZ", 1), (cone.variable(wire),), conjugate=False, batched=False)
        else:
            ket, bra = cone.split(wire)
            cone.place(TableSource(f"Pauli{pauli}", 1), (bra, ket), conjugate=False, batched=False)
    for gate in reversed(circuit.gates):
        if gate.name == "SWAP" and not gate.controls:
            cone.swap(*gate.targets)
        elif not cone.commutes_with(gate):
            batched = any(circuit.batched[parameter] for parameter in gate.parameters)
            cone.conjugate_by(gate, batched=batched)
    return cone.network(register)


@dataclass(frozen=True)
class _Placed:
    source: TableSource
    scope: tuple[int, ...]
    conjugate: bool
    batched: bool


class _Cone:
    def __init__(self) -> None:
        self._bits: dict[int, tuple[int, int]] = {}
        self._depths: list[int] = []
        self._placed: list[_Placed] = []
        self._depth = 0

    def _new_variable(self) -> int:
        self._depths.append(self._depth)
        return len(self._depths) - 1

    def variable(self, wire: int) -> int:
        """The ket's variable of a wire, made anew where the wire was absent."""
        if wire not in self._bits:
            variable = self._new_variable()
            self._bits[wire] = (variable, variable)
        return self._bits[wire][0]

    def split(self, wire: int) -> tuple[int, int]:
        """New ket and bra variables, on the side of the initial state."""
        self._bits[wire] = (self._new_variable(), self._new_variable())
        return self._bits[wire]

    def swap(self, first: int, second: int) -> None:
        moved = {first: self._bits.pop(second, None), second: self._bits.pop(first, None)}
        self._bits.update({wire: bits for wire, bits in moved.items() if bits is not None})

    def place(self, source: TableSource, scope: tuple[int, ...], *, conjugate: bool, batched: bool) -> None:
        self._placed.append(_Placed(source, scope, conjugate, batched))

    def commutes_with(self, gate: Gate) -> bool:
        read = gate.controls + (gate.targets if gate.diagonal else ())
        changed = () if gate.diagonal else gate.targets
        if any(wire in self._bits for wire in changed):
            return False
        return all(wire not in self._bits or self._bits[wire][0] == self._bits[wire][1] for wire in read)

    def conjugate_by(self, gate: Gate, *, batched: bool) -> None:
        """Place the gate for the ket and its conjugate for the bra."""
        self._depth += 1
        values = gate.control_values or (True,) * len(gate.controls)
        source = TableSource(gate.name, len(gate.targets), gate.parameters, gate.adjoint, values)
        wires = gate.controls + gate.targets
        for wire in wires:
            self.variable(wire)
        outputs = [self._bits[wire] for wire in wires]
        inputs = [] if gate.diagonal else [self.split(wire) for wire in gate.targets]
        for side in (0, 1):
            scope = tuple(bits[side] for bits in outputs) + tuple(bits[side] for bits in inputs)
            self.place(source, scope, conjugate=side == 1, batched=batched)

    def network(self, register: TableRegister) -> Network:
        """Fix every wire's variables at 0 and number the others."""
        zero = {bit for bits in self._bits.values() for bit in bits}
        used = sorted({v for placed in self._placed for v in placed.scope} - zero)
        numbers = {variable: number for number, variable in enumerate(used)}
        factors = []
        for placed in self._placed:
            free = tuple(axis for axis, variable in enumerate(placed.scope) if variable not in zero)
            view = register.view(placed.source, conjugate=placed.conjugate, axes=len(placed.scope), free=free)
            factors.append(Factor(view, tuple(numbers[placed.scope[axis]] for axis in free), placed.batched))
        if not factors:  # the identity: the number 1
            factors.append(Factor(register.view(TableSource("Identity", 1), conjugate=False, axes=1, free=()), ()))
        priority = tuple(-float(self._depths[variable]) for variable in used)
        return Network(len(used), tuple(factors), priority=priority)
