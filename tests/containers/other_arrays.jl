# The general methods of maxcut.jl, by which GPUs compute, agree with the loops: given maxcut.jl, prints the largest
# difference of cost and gradient.
include(ARGS[1])
using .MaxCut

"An array of no kind that maxcut.jl knows."
struct OtherArray{T,N} <: DenseArray{T,N}
    data::Array{T,N}
end
Base.size(array::OtherArray) = size(array.data)
Base.getindex(array::OtherArray, index::Int) = array.data[index]
Base.setindex!(array::OtherArray, value, index::Int) = (array.data[index] = value)
Base.IndexStyle(::Type{<:OtherArray}) = IndexLinear()
Base.similar(::OtherArray, ::Type{T}, size::Dims) where {T} = OtherArray(Array{T}(undef, size))

edges = [Edge(1, 2, 1.0), Edge(2, 3, 0.5), Edge(3, 4, -1.0), Edge(4, 1, 2.0), Edge(5, 6, 1.0), Edge(2, 4, 1.0)]
parts = components(Problem(string.(1:7), edges))
others = [placed(part, OtherArray) for part in parts]
gammas, betas = [0.4, 0.9], [0.3, 0.2]
whole(parts) = [value(parts, gammas, betas); collect(Iterators.flatten(value_and_gradient(parts, gammas, betas)))]
println(maximum(abs.(whole(parts) .- whole(others))))
