#include "train/keeper.h"

namespace linnet {
namespace {

constexpr int patience = 4;       // evaluations
constexpr double clearly = 1.01;  // times the best loss: less may be noise of the last batches

}  // namespace

bool Keeper::observe(std::int64_t step, double loss) {
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

bool Keeper::overfitting() const {
    return since_ >= patience && last_loss_ > best_loss_ * clearly;
}

nlohmann::json Keeper::to_json() const {
    if (!any()) return nullptr;
    return {{"step", best_step_}, {"loss", best_loss_}, {"last_loss", last_loss_}, {"since", since_}};
}

Keeper Keeper::from_json(const nlohmann::json& json) {
    Keeper keeper;
    if (json.is_null()) return keeper;
    keeper.best_step_ = json.at("step").get<std::int64_t>();
    keeper.best_loss_ = json.at("loss").get<double>();
    keeper.last_loss_ = json.at("last_loss").get<double>();
    keeper.since_ = json.at("since").get<int>();
    return keeper;
}

}  // namespace linnet
