// A failure whose text becomes the job's failure reason: "Type: what was wrong, with its value and the remedy".
#pragma once

#include <stdexcept>
#include <string>

namespace maxcut {

class JobError : public std::runtime_error {
public:
    JobError(std::string type, const std::string& message) : std::runtime_error(message), type_(std::move(type)) {}
    const std::string& type() const { return type_; }

private:
    std::string type_;
};

}  // namespace maxcut
