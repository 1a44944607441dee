// What a process is told and how long it takes.
#pragma once

#include <chrono>
#include <cstdlib>
#include <string>

namespace maxcut {

using Clock = std::chrono::steady_clock;

// An environment variable, empty where it is not set.
inline std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

inline double seconds_since(Clock::time_point begun) {
    return std::chrono::duration<double>(Clock::now() - begun).count();
}

}  // namespace maxcut
