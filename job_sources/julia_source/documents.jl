# Writes results as the Braket SDK reads them, and checkpoints as lines of numbers.

module Documents

export json, write_document, save_checkpoint, load_checkpoint, Evaluation

escape(text) = replace(replace(text, "\\" => "\\\\"), "\"" => "\\\"")

json(value::AbstractString) = "\"" * escape(value) * "\""
json(value::Bool) = string(value)
json(value::Real) = isfinite(value) ? string(value) : "null"
json(::Nothing) = "null"
json(values::AbstractVector{<:Pair}) = "{" * join((json(key) * ": " * json(value) for (key, value) in values), ", ") * "}"
json(values::AbstractVector) = "[" * join(json.(values), ", ") * "]"

"The file under its name is always whole."
function write_whole(file::String, text::String)
    write(file * ".writing", text)
    mv(file * ".writing", file; force = true)
end

function write_document(file::String, data)
    header = ["name" => "braket.jobs_data.persisted_job_data", "version" => "1"]
    write_whole(file, json(["braketSchemaHeader" => header, "dataDictionary" => data, "dataFormat" => "plaintext"]))
end

"One evaluation: at which parameters, the cost, its gradient, and how many seconds it took."
struct Evaluation
    gammas::Vector{Float64}
    betas::Vector{Float64}
    cost::Float64
    by_gamma::Vector{Float64}
    by_beta::Vector{Float64}
    seconds::Float64
end

numbers(it::Evaluation) = [it.gammas; it.betas; it.cost; it.by_gamma; it.by_beta; it.seconds]

checkpoint_file(folder, job) = joinpath(folder, job * "_checkpoint-1.txt")

function save_checkpoint(folder, job, origin::String, evaluations)
    isempty(folder) && return
    lines = [join(string.(numbers(it)), " ") for it in evaluations]
    write_whole(checkpoint_file(folder, job), join([origin; lines], "\n") * "\n")
end

"The evaluations of this job's checkpoint, or else of `other_job`'s; none where neither left one."
function load_checkpoint(folder, job, other_job, origin::String, p::Int)
    isempty(folder) && return Evaluation[]
    for name in (job, other_job)
        if name !== nothing && isfile(checkpoint_file(folder, name))
            return read_checkpoint(checkpoint_file(folder, name), origin, p)
        end
    end
    other_job === nothing || throw(ErrorException("CheckpointError: copy_checkpoints_from_job = '$other_job': no $(basename(checkpoint_file(folder, other_job))) in the checkpoint directory. Copy that job's checkpoints to this job's checkpoint location, or leave it out."))
    return Evaluation[]
end

function read_checkpoint(file, origin, p)
    lines = readlines(file)
    isempty(lines) || lines[1] == origin ||
        throw(ErrorException("CheckpointError: $file: made with other settings or another graph. Give the same values to continue it, or remove it to start anew."))
    rows = [[tryparse(Float64, word) for word in split(line)] for line in lines[2:end]]
    if isempty(lines) || any(row -> length(row) != 4p + 2 || nothing in row, rows)
        throw(ErrorException("CheckpointError: $file: not a checkpoint of this job. Remove it to start anew."))
    end
    return [Evaluation(r[1:p], r[p+1:2p], r[2p+1], r[2p+2:3p+1], r[3p+2:4p+1], r[4p+2]) for r in (Float64[row...] for row in rows)]
end

end
