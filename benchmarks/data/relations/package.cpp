// Runs the shape code of generated packages: a line per call, a line of JSON per answer.
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "shapes.h"

namespace {

using namespace ascend_graph::eager;

struct Call {
    std::vector<std::optional<at::Tensor>> tensors;
    std::vector<int64_t> numbers;
};

// @FUNCTIONS@

const std::map<int, std::vector<at::Tensor> (*)(const Call&)> kCases = {
    // @CASES@
};

}  // namespace

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream in(line);
        int number = 0;
        size_t tensors = 0;
        in >> number >> tensors;
        Call call;
        for (size_t n = 0; n < tensors; ++n) {
            int present = 0;
            int64_t type = 0, rank = 0, size = 0;
            in >> present >> type >> rank;
            std::vector<c10::SymInt> sizes;
            for (int64_t d = 0; d < rank && in >> size; ++d) sizes.push_back(size);
            call.tensors.push_back(
                present ? std::make_optional(at::Tensor(sizes, static_cast<at::ScalarType>(type)))
                        : std::nullopt);
        }
        int64_t value = 0;
        while (in >> value) call.numbers.push_back(value);
        try {
            const std::vector<at::Tensor> outputs = kCases.at(number)(call);
            std::cout << "[";
            for (size_t n = 0; n < outputs.size(); ++n) {
                std::cout << (n ? ", " : "");
                if (!outputs[n].defined()) {
                    std::cout << "null";
                    continue;
                }
                std::cout << "[[";
                for (size_t d = 0; d < outputs[n].sizes().size(); ++d)
                    std::cout << (d ? ", " : "") << outputs[n].sizes()[d].value();
                std::cout << "], " << static_cast<int64_t>(outputs[n].scalar_type()) << "]";
            }
            std::cout << "]\n";
        } catch (const std::runtime_error&) {
            std::cout << "null\n";
        }
    }
}
