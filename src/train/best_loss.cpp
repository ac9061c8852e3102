#include "train/best_loss.h"

namespace linnet {
namespace {

constexpr int patience = 4;       // evaluations
constexpr double clearly = 1.01;  // times the best loss: less may be noise of the last batches

}  // namespace

bool BestLoss::observe(std::int64_t step, double loss) {
    last_loss_ = loss;
    if (!beats_best(loss)) {
        since_++;
        return false;
    }
    best_loss_ = loss;
    best_step_ = step;
    since_ = 0;
    return true;
}

bool BestLoss::overfitting() const {
    return since_ >= patience && last_loss_ > best_loss_ * clearly;
}

nlohmann::json BestLoss::to_json() const {
    if (!any()) return nullptr;
    return {{"step", best_step_}, {"loss", best_loss_}, {"last_loss", last_loss_}, {"since", since_}};
}

BestLoss BestLoss::from_json(const nlohmann::json& json) {
    BestLoss best_loss;
    if (json.is_null()) return best_loss;
    best_loss.best_step_ = json.at("step").get<std::int64_t>();
    best_loss.best_loss_ = json.at("loss").get<double>();
    best_loss.last_loss_ = json.at("last_loss").get<double>();
    best_loss.since_ = json.at("since").get<std::int64_t>();
    return best_loss;
}

}  // namespace linnet
