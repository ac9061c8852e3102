// What a config says of the optimizer and of the learning rate's schedule.
#pragma once
#include <cstdint>
#include <string>

namespace linnet {

struct OptimizerConfig {
    std::string kind = "adamw";
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8, weight_decay = 0.1;
    double momentum = 0.95;  // of sgd and muon
    bool nesterov = true;
    std::int64_t momentum_warmup = 0;  // steps in which momentum rises from momentum_start
    double momentum_start = 0.85;
    bool cautious_decay = false;  // decay only where update and parameter have the same sign
    bool scaled_decay = false;    // decay also follows the schedule: times rate / its largest
};

struct ScheduleConfig {
    std::string kind = "cosine";
    std::int64_t warmup = 100;  // steps
    double min_lr = 1e-4;
    double decay = 0.4;  // share of the steps, for kind wsd
};

}  // namespace linnet
