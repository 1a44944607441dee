# Entry point of the Julia job: reads what it is asked, optimises, finds the best cut, saves the result.

include("maxcut.jl")
include("twister.jl")
include("graphs.jl")
include("settings.jl")
include("documents.jl")

using .MaxCut, .Twister, .Graphs, .Settings, .Documents

const CPU, GPU = "local:hybridjobs/maxcut-julia", "local:hybridjobs/maxcut-julia-cuda"
const CHANNEL = "input-graph"
const SEARCH_STARTS = 100

variable(name) = get(ENV, name, "")

function find_problem(settings::Hyperparameters)
    channel = joinpath(variable("AMZN_BRAKET_INPUT_DIR"), CHANNEL)
    given = haskey(ENV, "AMZN_BRAKET_INPUT_DIR") && isdir(channel)
    if settings.num_nodes === nothing
        given && return read_channel(channel)
        error("HyperparameterError: 1 invalid hyperparameter: no graph: give the job an input channel $CHANNEL, or num_nodes and num_edges for a generated one")
    end
    given && error("HyperparameterError: 1 invalid hyperparameter: num_nodes = $(settings.num_nodes) but the input channel $CHANNEL holds a graph: give one of the two")
    return random_problem(settings.num_nodes, settings.num_edges, settings.seed)
end

function log_metric(name, value, iteration)
    println("Metrics - timestamp=", time(), "; ", name, "=", value, "; iteration_number=", iteration, ";")
    flush(stdout)
end

"Calls evaluate(gammas, betas), which returns the derivatives, and returns the last parameters."
function optimise(evaluate, settings::Hyperparameters)
    gammas, betas = start(settings)
    parameters = [gammas; betas]
    first, second = zero(parameters), zero(parameters)
    for iteration in 1:settings.num_iterations
        slopes = evaluate(parameters[1:settings.p], parameters[(settings.p + 1):end])
        if settings.optimizer == "adam"
            first = 0.9 .* first .+ (1 - 0.9) .* slopes
            second = 0.99 .* second .+ (1 - 0.99) .* slopes .^ 2
            rate = settings.stepsize * sqrt(1 - 0.99^iteration) / (1 - 0.9^iteration)
            parameters = parameters .- rate .* first ./ (sqrt.(second) .+ 1e-8)
        else
            parameters = parameters .- settings.stepsize .* slopes
        end
    end
    return parameters[1:settings.p], parameters[(settings.p + 1):end]
end

"A whole number without a fraction, so that the cut of an unweighted graph reads 21 and not 21.0."
plain(value) = isinteger(value) && abs(value) < 1e15 ? Int(value) : value

"Moves one node at a time to the other side, the one that gains most, until none gains."
function improve!(problem::Problem, bits::BitVector)
    while true
        gains = zeros(length(bits))
        for edge in problem.edges
            gain = bits[edge.first] == bits[edge.second] ? edge.weight : -edge.weight
            gains[edge.first] += gain
            gains[edge.second] += gain
        end
        gain, node = findmax(gains)
        gain <= 1e-9 && return bits
        bits[node] = !bits[node]
    end
end

function classical_control(problem::Problem, count::Int, generator)
    drawn = [BitVector([uniform(generator) < 0.5 for _ in problem.labels]) for _ in 1:count]
    starts = drawn[1:min(count, SEARCH_STARTS)]
    random_best = maximum(cut(problem, bits) for bits in drawn)
    return [
        "random_cuts" => count,
        "random_best_cut" => plain(random_best),
        "local_search_starts" => length(starts),
        "local_search_best_cut" => plain(maximum(cut(problem, improve!(problem, copy(bits))) for bits in starts)),
    ]
end

middle(values) = (values[(length(values) + 1) ÷ 2] + values[length(values) ÷ 2 + 1]) / 2

"""
Which kind of array states are kept in, and the GPU's name.

CUDA.jl is in the image of the target `cuda` only, and loaded only for the device that needs it.
"""
gpu_arrays() = (CUDA.CuArray, CUDA.name(CUDA.device()))

function load_device(device)
    device == CPU && return
    device == GPU || error("DeviceError: device '$device' is unknown to this job. Use $CPU or $GPU.")
    Base.find_package("CUDA") === nothing &&
        error("DeviceError: CUDA.jl is not in this image. Give the job image = 'asset:julia:cuda', or the device $CPU.")
    @eval using CUDA
    Base.invokelatest(() -> CUDA.functional()) ||
        error("DeviceError: CUDA.jl finds no usable GPU here. Give the job an instance with a GPU, such as ml.g6.xlarge.")
end

function run_job()
    begun = time_ns()
    settings = parse_hyperparameters(ARGS)
    device = variable("AMZN_BRAKET_DEVICE_ARN")
    place, gpu = device == GPU ? gpu_arrays() : (identity, nothing)
    problem = find_problem(settings)
    folder, job = variable("AMZN_BRAKET_CHECKPOINT_DIR"), variable("AMZN_BRAKET_JOB_NAME")
    same = [settings.p, settings.seed, settings.stepsize, settings.optimizer, settings.initial_parameters]
    graph = [(edge.first, edge.second, edge.weight) for edge in problem.edges]
    origin = "origin " * string(hash((same, problem.labels, graph)); base = 16)
    recorded = load_checkpoint(folder, job, settings.copy_checkpoints_from_job, origin, settings.p)
    resumed_from = min(length(recorded), settings.num_iterations)
    parts = [placed(part, place) for part in components(problem)]
    # Compiles everything, so that the first iteration is timed like the others.
    smallest = Problem(["0", "1"], [MaxCut.Edge(1, 2, 1.0)])
    value_and_gradient([placed(part, place) for part in components(smallest)], [0.1], [0.1])
    setup_seconds = (time_ns() - begun) / 1e9
    done = 0
    function evaluate(gammas, betas)
        if done < length(recorded)
            it = recorded[done + 1]
            (it.gammas, it.betas) == (gammas, betas) || error("CheckpointError: iteration $done of the checkpoint is at other parameters than this job reaches. Remove it to start anew.")
        else
            start = time_ns()
            cost, by_gamma, by_beta = value_and_gradient(parts, gammas, betas)
            it = Evaluation(gammas, betas, cost, by_gamma, by_beta, (time_ns() - start) / 1e9)
            push!(recorded, it)
            log_metric("Cost", it.cost, done)
            log_metric("iteration_seconds", it.seconds, done)
            save_checkpoint(folder, job, origin, recorded)
        end
        done += 1
        return [it.by_gamma; it.by_beta]
    end
    gammas, betas = optimise(evaluate, settings)
    recorded = recorded[1:done]
    cost = value(parts, gammas, betas)
    log_metric("Cost", cost, done)
    generator = as_numpy(settings.seed)
    strings = sample(problem, parts, gammas, betas, settings.cut_samples, () -> uniform(generator))
    best_cut, best = findmax([cut(problem, bits) for bits in strings])
    best_possible = optimum(parts)
    seconds = [it.seconds for it in recorded]
    whole = all(label -> tryparse(Int, label) !== nothing, problem.labels)
    largest = maximum(length(part.nodes) - 1 for part in parts)
    write_document(joinpath(variable("AMZN_BRAKET_JOB_RESULTS_DIR"), "results.json"), [
        "cost" => cost,
        "costs" => [it.cost for it in recorded],
        "params" => [gammas, betas],
        "iterations" => done,
        "iteration_seconds" => seconds,
        "first_iteration_seconds" => seconds[1],
        "median_iteration_seconds" => length(seconds) > 1 ? middle(sort(seconds[2:end])) : nothing,
        "setup_seconds" => setup_seconds,
        "resumed_from_iteration" => resumed_from,
        "nodes" => length(problem.labels),
        "edges" => length(problem.edges),
        "node_labels" => whole ? parse.(Int, problem.labels) : problem.labels,
        "p" => settings.p,
        "diff_method" => settings.diff_method,
        "reduction" => "symmetry",
        "reduction_reason" => "connected components apart, one node of each held",
        "reduction_work" => Pair{String,Float64}[],
        "circuits" => length(parts),
        "circuit_executions" => length(parts),
        "qubits" => largest,
        "device" => device,
        "device_name" => split(device, '/')[end],
        "gpu" => gpu,
        "best_cut" => plain(best_cut),
        "best_partition" => join(bit == strings[best][1] ? '0' : '1' for bit in strings[best]),
        "best_cut_method" => "best of $(settings.cut_samples) samples of the final state",
        "optimum" => plain(best_possible),
        "cut_upper_bound" => plain(best_possible),
        "best_cut_ratio" => best_possible == 0 ? nothing : best_cut / best_possible,
        "classical_control" => classical_control(problem, settings.cut_samples, generator),
        "approximation_ratio" => best_possible == 0 ? nothing : -cost / best_possible,
        "memory_estimate_bytes" => sum(8 * length(part.cuts) for part in parts) + 3 * 16 * 2^largest,
        "peak_memory_bytes" => Int(Sys.maxrss()),
        "versions" => ["julia" => string(VERSION)],
        "threads" => ["cpus" => Sys.CPU_THREADS, "OMP_NUM_THREADS" => get(ENV, "OMP_NUM_THREADS", nothing), "used" => 1],
        "seed" => settings.seed,
        "settings" => as_pairs(settings),
    ])
end

try
    load_device(variable("AMZN_BRAKET_DEVICE_ARN"))
    # What has just been loaded is known only to calls that begin after it.
    Base.invokelatest(run_job)
catch failure
    reason = failure isa ErrorException ? failure.msg : sprint(showerror, failure)
    output = variable("SM_OUTPUT_DIR")
    isempty(output) || isfile(joinpath(output, "failure")) || write(joinpath(output, "failure"), reason)
    println(stderr, reason)
    exit(1)
end
