# The random numbers of NumPy and Python, so that a seed means here what it means there.

module Twister

export Generator, as_numpy, as_python, uniform, below

const SIZE = 624

"MT19937."
mutable struct Generator
    state::Vector{UInt32}
    position::Int
end

"As numpy.random.RandomState(seed)."
function as_numpy(seed::Integer)
    state = zeros(UInt32, SIZE)
    state[1] = seed % UInt32
    for index in 2:SIZE
        before = state[index - 1]
        state[index] = 0x6c078965 * (before ⊻ (before >> 30)) + UInt32(index - 1)
    end
    return Generator(state, SIZE)
end

"As Python's random.Random(seed), for a seed of 32 bits."
function as_python(seed::Integer)
    generator = as_numpy(19650218)
    state, index = generator.state, 2
    advance() = index == SIZE ? (state[1] = state[SIZE]; index = 2) : (index += 1)
    mixed() = state[index - 1] ⊻ (state[index - 1] >> 30)
    for _ in 1:SIZE
        state[index] = (state[index] ⊻ (mixed() * 0x0019660d)) + (seed % UInt32)
        advance()
    end
    for _ in 1:(SIZE - 1)
        state[index] = (state[index] ⊻ (mixed() * 0x5d588b65)) - UInt32(index - 1)
        advance()
    end
    state[1] = 0x80000000
    return generator
end

function next!(generator::Generator)
    state = generator.state
    if generator.position == SIZE
        for index in 1:SIZE
            joined = (state[index] & 0x80000000) | (state[mod1(index + 1, SIZE)] & 0x7fffffff)
            state[index] = state[mod1(index + 397, SIZE)] ⊻ (joined >> 1) ⊻ (isodd(joined) ? 0x9908b0df : 0x00000000)
        end
        generator.position = 0
    end
    generator.position += 1
    value = state[generator.position]
    value ⊻= value >> 11
    value ⊻= (value << 7) & 0x9d2c5680
    value ⊻= (value << 15) & 0xefc60000
    return value ⊻ (value >> 18)
end

"Uniform on [0, 1): NumPy's random_sample."
function uniform(generator::Generator)
    high, low = next!(generator) >> 5, next!(generator) >> 6
    return (high * 67108864.0 + low) / 9007199254740992.0
end

"Uniform on 0 .. count - 1: Python's random.choice."
function below(generator::Generator, count::Int)
    bits = ndigits(count; base = 2)
    while true
        value = Int(next!(generator) >> (32 - bits))
        value < count && return value
    end
end

end
