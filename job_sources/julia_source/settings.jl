# The job's hyperparameters: those of qaoa_source, read from the command line and checked all at once before any work.

module Settings

using ..Twister

export Hyperparameters, parse_hyperparameters, start, as_pairs

"What a job is asked to do, see qaoa_source. This program is exact and differentiates by its own adjoint pass."
Base.@kwdef struct Hyperparameters
    p::Int = 2
    seed::Int = 1967
    num_iterations::Int = 5
    stepsize::Float64 = 0.1
    shots::Nothing = nothing
    interface::String = "auto"
    diff_method::String = "adjoint"
    reduction::String = "auto"
    optimizer::String = "gradient-descent"
    precision::String = "double"
    initial_parameters::Union{Nothing,Vector{Vector{Float64}}} = nothing
    num_nodes::Union{Nothing,Int} = nothing
    num_edges::Union{Nothing,Int} = nothing
    cut_samples::Int = 1000
    copy_checkpoints_from_job::Union{Nothing,String} = nothing
    max_parallel::Int = 10
    parametrize_differentiable::Bool = true
end

struct Refusal <: Exception
    text::String
end

function integer(low, high)
    return function (text)
        number = tryparse(Int, text)
        number !== nothing && low <= number <= high && return number
        throw(Refusal("give a whole number from $low to $high"))
    end
end

function positive(text)
    number = tryparse(Float64, text)
    number !== nothing && isfinite(number) && number > 0 && return number
    throw(Refusal("give a positive number"))
end

choice(options...) = text -> text in options ? text : throw(Refusal("give " * (length(options) > 1 ? "one of " : "") * join(options, ", ") * "; qaoa_source has the others"))

no_shots(text) = lowercase(text) in ("", "none", "0") ? nothing : throw(Refusal("this program is exact and draws no shots: leave it out, or use qaoa_source"))

flag(text) = lowercase(text) in ("true", "false") ? lowercase(text) == "true" : throw(Refusal("give true or false"))

name(text) = isempty(text) ? throw(Refusal("give the name of a job, or leave it out")) : text

function initial(text)
    refusal = Refusal("give two lists of p finite numbers, gammas then betas, for example [[0.1, 0.2], [0.3, 0.4]]")
    shape = match(r"^\[\s*\[([^\[\]]*)\]\s*,\s*\[([^\[\]]*)\]\s*\]$", text)
    shape === nothing && throw(refusal)
    rows = [[tryparse(Float64, strip(item)) for item in split(row, ',')] for row in shape.captures]
    all(row -> all(item -> item !== nothing && isfinite(item), row), rows) && length(rows[1]) == length(rows[2]) || throw(refusal)
    return [Float64[row...] for row in rows]
end

const PARSERS = Dict{Symbol,Any}(
    :p => integer(1, 50),
    :seed => integer(0, 2^32 - 1),
    :num_iterations => integer(1, 100_000),
    :stepsize => positive,
    :shots => no_shots,
    :interface => choice("auto"),
    :diff_method => choice("adjoint"),
    :reduction => choice("symmetry", "auto"),
    :optimizer => choice("gradient-descent", "adam"),
    :precision => choice("double"),
    :initial_parameters => initial,
    :num_nodes => integer(2, 100_000),
    :num_edges => integer(1, 10_000_000),
    :cut_samples => integer(1, 1_000_000),
    :copy_checkpoints_from_job => name,
    :max_parallel => integer(1, 1000),
    :parametrize_differentiable => flag,
)

"Reads `--name value` and `-n value`; names every invalid hyperparameter with its value and the remedy."
function parse_hyperparameters(arguments::Vector{String})
    values, problems = Dict{Symbol,Any}(), String[]
    isodd(length(arguments)) && push!(problems, "$(arguments[end]) has no value: give --name value")
    for place in 1:2:(length(arguments) - 1)
        key, text = Symbol(lstrip(arguments[place], '-')), arguments[place + 1]
        startswith(String(key), "sagemaker_") && continue
        if !haskey(PARSERS, key)
            push!(problems, "$key is unknown, use one of $(join(sort!(String.(collect(keys(PARSERS)))), ", "))")
            continue
        end
        try
            values[key] = PARSERS[key](strip(text) |> String)
        catch refusal
            refusal isa Refusal || rethrow()
            push!(problems, "$key = '$text': $(refusal.text)")
        end
    end
    settings = Hyperparameters(; values...)
    append!(problems, contradictions(settings))
    isempty(problems) && return settings
    count = length(problems) == 1 ? "1 invalid hyperparameter" : "$(length(problems)) invalid hyperparameters"
    throw(ErrorException("HyperparameterError: $count: " * join(problems, "; ")))
end

function contradictions(settings::Hyperparameters)
    problems = String[]
    rows = settings.initial_parameters
    if rows !== nothing && length(rows[1]) != settings.p
        push!(problems, "initial_parameters has $(length(rows[1])) gammas and betas but p = $(settings.p): give p of each")
    end
    if (settings.num_nodes === nothing) != (settings.num_edges === nothing)
        push!(problems, "num_nodes and num_edges describe a generated graph together: give both or neither")
    elseif settings.num_nodes !== nothing
        most = settings.num_nodes * (settings.num_nodes - 1) ÷ 2
        settings.num_edges > most &&
            push!(problems, "num_edges = $(settings.num_edges): $(settings.num_nodes) nodes have at most $most edges")
    end
    return problems
end

"The parameters of the first iteration: gammas and betas."
function start(settings::Hyperparameters)
    settings.initial_parameters !== nothing && return copy.(settings.initial_parameters)
    generator = as_numpy(settings.seed)
    return [[0.01 * uniform(generator) for _ in 1:settings.p] for _ in 1:2]
end

as_pairs(settings::Hyperparameters) =
    [String(field) => getfield(settings, field) for field in fieldnames(Hyperparameters)]

end
