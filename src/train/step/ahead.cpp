#include "train/step/ahead.h"

#include <system_error>
#include <utility>

namespace linnet {

BatchesAhead::BatchesAhead(Make make, bool ahead) : make_(std::move(make)) {
    if (!ahead) return;
    try {
        thread_ = std::thread([this] { live(); });
    } catch (const std::system_error&) {  // no thread is left
    }
}

BatchesAhead::~BatchesAhead() {
    if (!thread_.joinable()) return;
    wait_for_batch();
    state_.store(over);
    thread_.join();
}

void BatchesAhead::wait_for_batch() {
    if (number_ != none) state_.wait([](std::uint32_t state) { return state == made; });
}

void BatchesAhead::live() {
    const auto called = [](std::uint32_t state) { return state == wanted || state == over; };
    while (state_.wait(called) == wanted) {
        try {
            make_(number_, batch_);
        } catch (...) {
            failure_ = std::current_exception();
        }
        state_.store(made);
    }
}

Batch BatchesAhead::take(std::int64_t number, std::int64_t end) {
    wait_for_batch();
    const std::int64_t ahead = std::exchange(number_, none);
    const std::exception_ptr failure = std::exchange(failure_, nullptr);
    Batch batch = std::exchange(batch_, {});
    if (ahead == number && failure) std::rethrow_exception(failure);
    if (ahead != number) make_(number, batch);
    if (thread_.joinable() && number + 1 < end) {
        number_ = number + 1;
        state_.store(wanted);
    }
    return batch;
}

}  // namespace linnet
