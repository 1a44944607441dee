# Reads a graph from a job's input channel, or makes the documented random one.

module Graphs

using ..MaxCut: Edge, Problem
using ..Twister

export read_channel, random_problem

fail(message) = throw(ErrorException("GraphError: " * message))

"Orders nodes and edges by label, as numbers where all are whole numbers."
function ordered(labels::Vector{String}, edges::Vector{Edge})
    isempty(edges) && fail("the graph has $(length(labels)) nodes and no edge: there is nothing to cut. Add edges.")
    numbers = [tryparse(Int, label) for label in labels]
    whole = all(number -> number !== nothing, numbers)
    order = whole ? sortperm(Int[number for number in numbers]) : sortperm(labels)
    whole && length(unique(numbers)) < length(labels) &&
        fail("two node names are the same number. Write each node in one way.")
    position = invperm(order)
    moved = [Edge(minmax(position[edge.first], position[edge.second])..., edge.weight) for edge in edges]
    return Problem(labels[order], sort!(moved; by = edge -> (edge.first, edge.second)))
end

function weight_of(text::AbstractString, place::String)
    quoted = match(r"^\{\s*['\"]weight['\"]\s*:\s*([^,}]+)\}$", text)
    number = tryparse(Float64, strip(quoted === nothing ? text : quoted.captures[1]))
    number !== nothing && isfinite(number) && return number
    text == "{}" && return 1.0
    fail("$place: '$text' is no weight. Write a finite number, for example 0 1 2.5.")
end

"Reads .adjlist (node neighbour neighbour ...) or .edgelist and .edges (node node, or node node weight)."
function read_graph(file::String)
    name, suffix = basename(file), splitext(file)[2]
    suffix in (".adjlist", ".edgelist", ".edges") ||
        fail("$name: '$suffix' is no graph format that this program reads. Use one of .adjlist, .edgelist, .edges.")
    positions, labels, edges, lines = Dict{String,Int}(), String[], Edge[], Dict{Tuple{Int,Int},Int}()
    node(label) = get!(positions, label) do
        push!(labels, label)
        length(labels)
    end
    function edge(line, first, second, weight)
        place = "$name, line $line"
        first == second && fail("$place: node $first has an edge to itself, which no cut can contain. Remove it.")
        key = minmax(node(first), node(second))
        haskey(lines, key) && fail("$place: edge $first - $second is already given in line $(lines[key]). Keep one, with the sum as its weight.")
        lines[key] = line
        push!(edges, Edge(key..., weight))
    end
    for (line, text) in enumerate(eachline(file))
        words = String.(split(first(split(text, '#'))))
        isempty(words) && continue
        node(words[1])
        if suffix == ".adjlist"
            foreach(other -> edge(line, words[1], other, 1.0), words[2:end])
        elseif length(words) > 1
            weight = length(words) > 2 ? weight_of(join(words[3:end], " "), "$name, line $line") : 1.0
            edge(line, words[1], words[2], weight)
        end
    end
    return ordered(labels, edges)
end

"Reads the one graph file that an input channel holds."
function read_channel(channel::String)
    files = [joinpath(folder, file) for (folder, _, names) in walkdir(channel) for file in names]
    length(files) == 1 && return read_graph(files[1])
    names = isempty(files) ? "no file" : join(sort!(basename.(files)), ", ")
    fail("input channel '$(basename(channel))' holds $names. Give it one graph file.")
end

"networkx.gnm_random_graph(nodes, edges, seed), weights 1."
function random_problem(nodes::Int, edges::Int, seed::Int)
    found = Set{Tuple{Int,Int}}()
    generator = as_python(seed)
    if edges >= nodes * (nodes - 1) ÷ 2
        union!(found, [(low, high) for high in 2:nodes for low in 1:(high - 1)])
    end
    while length(found) < edges
        one, other = below(generator, nodes) + 1, below(generator, nodes) + 1
        one != other && push!(found, minmax(one, other))
    end
    return ordered(string.(0:(nodes - 1)), [Edge(pair..., 1.0) for pair in found])
end

end
