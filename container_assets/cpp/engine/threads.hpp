// A team of threads that share loops. What a loop computes does not depend on how many threads there are.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "kernels.hpp"

namespace maxcut {

// The processors that this process may run on.
unsigned processors();
// The number of threads to use: OMP_NUM_THREADS, else one for each processor.
unsigned default_threads();

class Team {
public:
    explicit Team(unsigned threads);
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    unsigned size() const { return static_cast<unsigned>(workers_.size()) + 1; }
    // Calls work(range, thread) for parts of 0 .. count, on at most `most` threads, and waits for all of them.
    void share(std::size_t count, unsigned most, const std::function<void(Range, unsigned)>& work);

private:
    void serve(unsigned thread);
    void do_part(unsigned thread) const;

    std::vector<std::thread> workers_;
    std::atomic<unsigned> round_{0};
    std::atomic<unsigned> running_{0};
    bool ending_ = false;
    std::size_t count_ = 0;
    unsigned parts_ = 1;
    const std::function<void(Range, unsigned)>* work_ = nullptr;
};

}  // namespace maxcut
