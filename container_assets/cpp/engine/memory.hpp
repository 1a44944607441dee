// Memory for state vectors: huge pages where the system has them, and an error with numbers where it does not suffice.
#pragma once

#include <cstddef>
#include <utility>

namespace maxcut {

// Bytes that may be allocated now, by the machine's free memory and the container's limit.
std::size_t available_memory();
// The most memory that this process has held, in bytes.
std::size_t peak_memory();

// Uninitialised memory of whole pages, aligned to 2 MiB where it is large.
class Memory {
public:
    Memory() = default;
    explicit Memory(std::size_t bytes);
    ~Memory();
    Memory(Memory&& other) noexcept { *this = std::move(other); }
    Memory& operator=(Memory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    template <typename Value>
    Value* as() const {
        return static_cast<Value*>(data_);
    }
    std::size_t bytes() const { return bytes_; }

private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace maxcut
