// The hybrid job: what the container's environment describes, from hyperparameters to results.json.
#pragma once

namespace maxcut {

inline constexpr const char* device = "local:hybridjobs/maxcut-cpp";
inline constexpr const char* version = "1.0.0";

// Throws JobError where the job can't be run.
void run_job();

// Writes the reason to $SM_OUTPUT_DIR/failure, where the service looks for it.
void record_failure(const char* reason);

}  // namespace maxcut
