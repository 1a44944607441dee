# Max-Cut QAOA by exact state vectors: the cost <H_C>, H_C = 1/2 sum_ij w_ij (Z_i Z_j - 1), and its gradient.
#
# The cost is diagonal on bit strings, and the mixer sum_i X_i after a Walsh-Hadamard transform. Connected components
# are simulated apart, and one node of each is held at 0, since flipping all bits changes no cut: its X flips all other
# bits. The gradient takes one reverse pass with one more state. Julia 1.5 or newer, standard library only.
#
# A state is in the kind of array that its component's cuts are in. Loops serve Julia's own arrays; any other kind, such
# as CUDA.jl's, is computed with as a whole, by broadcasts and sums, which such a package runs where its arrays are.

module MaxCut

export Problem, Edge, Component, value_and_gradient, value, components, cut, optimum, placed, sample

struct Edge
    first::Int
    second::Int
    weight::Float64
end

"Node k of every array and bit string is labels[k]; nodes without edges are part of the problem."
struct Problem
    labels::Vector{String}
    edges::Vector{Edge}
end

"Nodes that are connected, the first one held at 0; bit k - 2 of a state's index is nodes[k], cuts[z + 1] its cut."
struct Component{Reals<:AbstractVector{Float64}}
    nodes::Vector{Int}
    cuts::Reals
end

"The component with its cuts in another kind of array, made by `place`; its states will be of that kind too."
placed(component::Component, place) = Component(component.nodes, place(component.cuts))

bits_of(component::Component) = length(component.nodes) - 1

"The connected components that have edges, with the cut of every bit string."
function components(problem::Problem)
    parent = collect(1:length(problem.labels))
    root(node) = parent[node] == node ? node : (parent[node] = root(parent[node]))
    for edge in problem.edges
        one, other = root(edge.first), root(edge.second)
        parent[max(one, other)] = min(one, other)
    end
    groups = Dict{Int,Vector{Edge}}()
    for edge in problem.edges
        push!(get!(groups, root(edge.first), Edge[]), edge)
    end
    found = Component{Vector{Float64}}[]
    for top in sort!(collect(keys(groups)))
        nodes = [node for node in 1:length(parent) if root(node) == top]
        push!(found, Component(nodes, cut_table(nodes, groups[top])))
    end
    return found
end

function cut_table(nodes::Vector{Int}, edges::Vector{Edge})
    bit = Dict(node => place - 2 for (place, node) in enumerate(nodes))
    cuts = zeros(2^(length(nodes) - 1))
    for edge in edges
        one, other, weight = bit[edge.first], bit[edge.second], edge.weight
        @inbounds for index in eachindex(cuts)
            differ = (one < 0 ? 0 : ((index - 1) >> one) & 1) != (other < 0 ? 0 : ((index - 1) >> other) & 1)
            cuts[index] += ifelse(differ, weight, 0.0)
        end
    end
    return cuts
end

"Walsh-Hadamard transform in place, without a factor."
function transform!(state::Vector{ComplexF64})
    half = 1
    while half < length(state)
        @inbounds for start in 0:(2 * half):(length(state) - 1)
            @simd for index in (start + 1):(start + half)
                one, other = state[index], state[index + half]
                state[index] = one + other
                state[index + half] = one - other
            end
        end
        half *= 2
    end
    return state
end

function transform!(state::AbstractVector{ComplexF64})
    half = 1
    while half < length(state)
        pairs = reshape(state, half, 2, :)
        one, other = pairs[:, 1, :], pairs[:, 2, :]
        view(pairs, :, 1, :) .= one .+ other
        view(pairs, :, 2, :) .= one .- other
        half *= 2
    end
    return state
end

"The mixer's eigenvalue by the number of set bits: the held node's X is the product of all others."
eigenvalue(bits::Int, set::Int) = bits - 2 * set + (iseven(set) ? 1 : -1)

cost_layer!(state, cuts, gamma) = (state .*= cis.(gamma .* cuts))

"Applies exp(-i beta H_M) to a state that is already transformed, and transforms it back."
function mixer_layer!(state::Vector{ComplexF64}, bits::Int, beta::Float64)
    phases = [cis(-beta * eigenvalue(bits, set)) / length(state) for set in 0:bits]
    @inbounds for index in eachindex(state)
        state[index] *= phases[count_ones(index - 1) + 1]
    end
    return transform!(state)
end

function mixer_layer!(state::AbstractVector{ComplexF64}, bits::Int, beta::Float64)
    state .*= cis.(-beta .* eigenvalue.(bits, count_ones.(0:(length(state) - 1)))) ./ length(state)
    return transform!(state)
end

function final_state(component::Component, gammas::Vector{Float64}, betas::Vector{Float64})
    bits = bits_of(component)
    state = fill!(similar(component.cuts, ComplexF64), 2.0^(-bits / 2))
    for (gamma, beta) in zip(gammas, betas)
        cost_layer!(state, component.cuts, gamma)
        mixer_layer!(transform!(state), bits, beta)
    end
    return state
end

"sum of Im(conj(adjoint) state) weighted by the cut of each entry."
function cut_overlap(adjoint::Vector{ComplexF64}, state::Vector{ComplexF64}, cuts::Vector{Float64})
    total = 0.0
    @inbounds for index in eachindex(state)
        total += cuts[index] * imag(conj(adjoint[index]) * state[index])
    end
    return total
end

cut_overlap(adjoint, state, cuts) = sum(cuts .* imag.(conj.(adjoint) .* state))

"sum of Im(conj(adjoint) state) weighted by the mixer's eigenvalue of each entry."
function mixer_overlap(adjoint::Vector{ComplexF64}, state::Vector{ComplexF64}, bits::Int)
    total = 0.0
    @inbounds for index in eachindex(state)
        total += eigenvalue(bits, count_ones(index - 1)) * imag(conj(adjoint[index]) * state[index])
    end
    return total
end

function mixer_overlap(adjoint, state, bits::Int)
    return sum(eigenvalue.(bits, count_ones.(0:(length(state) - 1))) .* imag.(conj.(adjoint) .* state))
end

"The cost of one component, its derivatives added to the two gradients."
function add_gradient!(component::Component, gammas, betas, by_gamma, by_beta)
    bits, cuts = bits_of(component), component.cuts
    state = final_state(component, gammas, betas)
    adjoint = -cuts .* state
    cost = -sum(cuts .* abs2.(state))
    for layer in length(gammas):-1:1
        transform!(state)
        transform!(adjoint)
        mixed = mixer_overlap(adjoint, state, bits)
        by_beta[layer] += 2 * mixed / length(state)
        mixer_layer!(state, bits, -betas[layer])
        mixer_layer!(adjoint, bits, -betas[layer])
        by_gamma[layer] -= 2 * cut_overlap(adjoint, state, cuts)
        cost_layer!(state, cuts, -gammas[layer])
        cost_layer!(adjoint, cuts, -gammas[layer])
    end
    return cost
end

"The cost and its derivatives by the gammas and the betas."
function value_and_gradient(parts::Vector{<:Component}, gammas::Vector{Float64}, betas::Vector{Float64})
    by_gamma, by_beta = zero(gammas), zero(betas)
    cost = 0.0
    for part in parts
        cost += add_gradient!(part, gammas, betas, by_gamma, by_beta)
    end
    return cost, by_gamma, by_beta
end

"The cost alone."
function value(parts::Vector{<:Component}, gammas::Vector{Float64}, betas::Vector{Float64})
    return sum(-sum(part.cuts .* abs2.(final_state(part, gammas, betas))) for part in parts)
end

"The largest cut there is."
optimum(parts::Vector{<:Component}) = sum(maximum(part.cuts) for part in parts)

"The weight of the edges between nodes whose bits differ."
function cut(problem::Problem, bits::BitVector)
    total = 0.0
    for edge in problem.edges
        bits[edge.first] != bits[edge.second] && (total += edge.weight)
    end
    return total
end

"Bit strings drawn from the final state; `uniform()` gives numbers on [0, 1). Nodes without edges are 0."
function sample(problem::Problem, parts::Vector{<:Component}, gammas, betas, count::Int, uniform)
    drawn = [falses(length(problem.labels)) for _ in 1:count]
    for part in parts
        reached = cumsum(Array(abs2.(final_state(part, gammas, betas))))
        for bits in drawn
            string = min(searchsortedfirst(reached, uniform() * reached[end]), length(reached)) - 1
            for place in 2:length(part.nodes)
                bits[part.nodes[place]] = (string >> (place - 2)) & 1 == 1
            end
        end
    end
    return drawn
end

end
