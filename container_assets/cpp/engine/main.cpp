// maxcut-cpp: exact QAOA for Max-Cut as a hybrid job.
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "evaluate.hpp"
#include "job.hpp"
#include "job_error.hpp"

namespace {

int failed(const std::string& reason) {
    maxcut::record_failure(reason.c_str());
    std::fprintf(stderr, "%s\n", reason.c_str());
    return 1;
}

}  // namespace

int main(int count, char** arguments) {
    // A job is started with its hyperparameters as arguments, which it reads from their file instead.
    const std::string command = count > 1 && arguments[1][0] != '-' ? arguments[1] : "";
    try {
        if (command == "evaluate") {
            maxcut::evaluate_lines(std::cin, std::cout);
        } else if (command == "bandwidth" && count == 3) {
            maxcut::measure_bandwidth(std::stoull(arguments[2]), std::cout);
        } else if (command.empty()) {
            maxcut::run_job();
        } else {
            std::fprintf(stderr,
                         "usage: maxcut-cpp            run the hybrid job that the environment describes\n"
                         "       maxcut-cpp evaluate   answer problems from standard input, one JSON object a line\n"
                         "       maxcut-cpp bandwidth BYTES\n");
            return 2;
        }
    } catch (const maxcut::JobError& error) {
        return failed(error.type() + ": " + error.what());
    } catch (const std::bad_alloc&) {
        return failed("MemoryError: there is not enough memory. Use an instance with more.");
    } catch (const std::exception& error) {
        return failed(std::string("RuntimeError: ") + error.what());
    }
    return 0;
}
