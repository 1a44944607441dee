#include "threads.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>

namespace maxcut {

unsigned processors() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
    return std::max(std::thread::hardware_concurrency(), 1u);
}

unsigned default_threads() {
    const char* const text = std::getenv("OMP_NUM_THREADS");
    const int number = text == nullptr ? 0 : std::atoi(text);
    return number > 0 ? static_cast<unsigned>(number) : processors();
}

Team::Team(unsigned threads) {
    for (unsigned thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { serve(thread); });
}

Team::~Team() {
    ending_ = true;
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void Team::share(std::size_t count, unsigned most, const std::function<void(Range, unsigned)>& work) {
    const auto wanted = std::min<std::size_t>({most, size(), count});
    if (wanted <= 1) return work({0, count}, 0);
    count_ = count;
    parts_ = static_cast<unsigned>(wanted);
    work_ = &work;
    running_.store(static_cast<unsigned>(workers_.size()), std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    do_part(0);
    for (unsigned left = running_.load(std::memory_order_acquire); left != 0;
         left = running_.load(std::memory_order_acquire))
        running_.wait(left, std::memory_order_acquire);
}

void Team::serve(unsigned thread) {
    for (unsigned seen = 0;;) {
        round_.wait(seen, std::memory_order_acquire);
        seen = round_.load(std::memory_order_acquire);
        if (ending_) return;
        do_part(thread);
        if (running_.fetch_sub(1, std::memory_order_release) == 1) running_.notify_one();
    }
}

void Team::do_part(unsigned thread) const {
    if (thread >= parts_) return;
    const Range range{count_ * thread / parts_, count_ * (thread + 1) / parts_};
    if (range.begin < range.end) (*work_)(range, thread);
}

}  // namespace maxcut
