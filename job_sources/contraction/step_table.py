"""Layout of a plan's tables of numbers, common to those who write steps and those who run them.

One step multiplies the tables of its inputs over a joint index of BITS bits and sums the SUMMED highest ones. An
input's index is what remains of the joint index at the input's MASK (bit positions keep their order).

A folded step uses the symmetry F(not x) = sign F(x): its tables hold only the entries whose highest variable is 0, its
joint index leaves that variable out, and an index whose highest output bit is 1 lands on the complement.
"""

# Columns of the table of steps: bits of the joint index, how many of them are summed, whether folded, the output's
# sign, how often the sum is halved, the output's offset and entries, first row and number of its inputs, and whether
# its tables have a batch.
BITS, SUMMED, FOLDED, SIGN, HALVINGS, OUTPUT, STORED, FIRST_INPUT, INPUTS, BATCHED = range(10)

# Columns of the table of inputs.
OFFSET, MASK, INPUT_BATCHED = range(3)

MOST_INPUTS = 6

# Entries without a batch are worked on in blocks of so many; rows of scratch: see sweep_kernels.
BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS
SCRATCH = (3 * MOST_INPUTS + 1) * BLOCK

# Samples of a batch that are worked on together: enough to pay for the index arithmetic of a step's entry.
LANES = 64
