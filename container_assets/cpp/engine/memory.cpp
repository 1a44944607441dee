#include "memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <new>
#include <string>

namespace maxcut {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

std::size_t number_in(const char* file) {
    std::size_t value = 0;
    return std::ifstream(file) >> value ? value : unlimited;
}

std::size_t left_of_limit(const char* limit_file, const char* used_file) {
    const std::size_t limit = number_in(limit_file), used = number_in(used_file);
    return limit == unlimited || used == unlimited ? unlimited : limit - std::min(used, limit);
}

}  // namespace

std::size_t available_memory() {
    std::size_t bytes = unlimited;
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("MemAvailable:")) bytes = std::stoull(line.substr(13)) << 10;
    // Control groups, version 2 and version 1.
    bytes = std::min(bytes, left_of_limit("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"));
    return std::min(bytes, left_of_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                         "/sys/fs/cgroup/memory/memory.usage_in_bytes"));
}

std::size_t peak_memory() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss) << 10;
}

Memory::Memory(std::size_t bytes) {
    if (bytes == 0) return;
    // Room to move the start to a multiple of a huge page; the rest of the reservation is never touched.
    const std::size_t reserved = bytes + (bytes >= huge_page ? huge_page : 0);
    void* start = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    data_ = start;
    bytes_ = reserved;
    if (bytes < huge_page) return;
    const auto address = reinterpret_cast<std::uintptr_t>(start);
    const std::size_t skipped = (huge_page - address % huge_page) % huge_page;
    if (skipped != 0) munmap(start, skipped);
    data_ = static_cast<char*>(start) + skipped;
    bytes_ = reserved - skipped;
    madvise(data_, bytes_, MADV_HUGEPAGE);
}

Memory::~Memory() {
    if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace maxcut
