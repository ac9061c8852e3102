#include "train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/system.h"
#include "base/terminal.h"
#include "train/run_model.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* best_name = "best.gguf";
constexpr std::string_view prefix = "step-";
constexpr std::string_view partial = ".partial-";    // being written, or being removed
constexpr std::string_view replaced = ".replaced-";  // being exchanged, where the file system cannot do that
constexpr std::size_t kept = 2;
constexpr double most_seconds = 3e9;  // of training: human_seconds says no more
constexpr const char* moments_name = "optimizer.bin";
constexpr const char* helpers_name = "generator.bin";  // only where there are such parameters

std::string step_name(std::int64_t step) {
    std::string digits = std::to_string(step);
    return std::string(prefix) + std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

/// Folders of checkpoints, oldest first. Only names that save_checkpoint makes count: whatever else lies
/// there is the user's.
std::vector<std::string> checkpoints(const std::string& folder) {
    std::vector<std::pair<std::int64_t, std::string>> found;
    for (const std::string& name : names_in(folder)) {
        if (!name.starts_with(prefix)) continue;
        std::int64_t step = -1;
        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
        std::error_code ignored;
        if (step >= 0 && name == step_name(step) && fs::is_directory(folder + "/" + name, ignored))
            found.emplace_back(step, folder + "/" + name);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> paths;
    for (auto& [step, path] : found) paths.push_back(std::move(path));
    return paths;
}

/// Out of sight first: half of a checkpoint must not bear a checkpoint's name.
void remove_checkpoint(const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    const std::string hidden = fs::path(path).parent_path().string() + "/" + std::string(partial) + name;
    remove_all(hidden);
    if (rename_file(path, hidden) == 0) remove_all(hidden);
}

/// Gives the checkpoint `written` its name, which an older one may bear. What is left of that one is removed.
void put_in_place(const std::string& written, const std::string& folder, const std::string& name) {
    const std::string path = folder + "/" + name, aside = folder + "/" + std::string(replaced) + name;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
        if (int error = rename_file(written, path)) fail_errno(path, "", error);
    } else if (!exchange_names(written, path)) {
        // remove_partial_checkpoints ends this where it is broken off.
        if (int error = rename_file(path, aside)) fail_errno(path, "", error);
        if (int error = rename_file(written, path)) fail_errno(path, "", error);
    }
    sync_folder(folder);
    remove_all(written);
    remove_all(aside);
}

/// Removes a folder when the scope ends, also by an error (a full disk).
struct Removed {
    const std::string path;
    ~Removed() { remove_all(path); }
};

/// Arrays that a file of a checkpoint holds one after another, and nothing else.
using Floats = std::vector<std::span<float>>;

Floats moments_of(Learner& learner) {
    Optimizer& optimizer = learner.optimizer();
    return {{optimizer.state(), static_cast<std::size_t>(optimizer.state_elements())}};
}

/// The values of what no model file holds, in the graph's order.
Floats helpers_of(const Learner& learner) {
    Floats helpers;
    const std::vector<Tensor> all = learner.parameters();
    for (std::size_t i = 0; i < all.size(); i++)
        if (learner.traced().graph.parameters()[i].adapter == helper)
            helpers.emplace_back(all[i].as<float>(), static_cast<std::size_t>(all[i].shape.count()));
    return helpers;
}

/// Returns the file's sha256.
std::string write_floats(const std::string& path, const Floats& parts) {
    AtomicFile file(path);
    Sha256 sum;
    for (const std::span<float> part : parts) {
        file.write(part.data(), part.size_bytes());
        sum.update(part.data(), part.size_bytes());
    }
    file.commit();
    return sum.hex();
}

/// `whose`: says in an error what the size is to be like.
void read_floats(const std::string& path, const Floats& parts, const std::string& whose) {
    const MappedFile file(path);
    std::size_t expected = 0;
    for (const std::span<float> part : parts) expected += part.size_bytes();
    if (file.bytes().size() != expected)
        fail_input(path, "", std::to_string(expected) + " bytes, " + whose,
                   std::to_string(file.bytes().size()));
    const std::byte* from = file.bytes().data();
    for (const std::span<float> part : parts) {
        if (!part.empty()) std::memcpy(part.data(), from, part.size_bytes());
        from += part.size_bytes();
    }
}

/// A count out of a manifest, at `place` ("norms/skipped"); exact as a double, too. `most`: the checkpoint's
/// step, of what happens at most once a step.
std::uint64_t count_of(const json& manifest, const std::string& place, const std::string& path,
                       std::uint64_t most = UINT64_MAX) {
    const json::json_pointer member("/" + place);
    const json value = manifest.is_object() && manifest.contains(member) ? manifest.at(member) : json();
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{1} << 53)
        fail_input(path, place, "a count",
                   value.is_number() ? value.dump()
                   : value.is_null() ? "none"
                                     : value.type_name());
    const auto found = value.get<std::uint64_t>();
    if (found > most)
        fail_input(path, place, "at most the checkpoint's step, " + std::to_string(most),
                   std::to_string(found));
    return found;
}

/// Refuses numbers at `place`, one or a list, of which one does not fit.
void check_numbers(const json& manifest, const std::string& place, const std::string& path,
                   const std::string& expected, bool (*fits)(double)) {
    const json& found = manifest.at(json::json_pointer("/" + place));
    const auto check = [&](const json& number) {
        if (!fits(number.get<double>())) fail_input(path, place, expected, number.dump());
    };
    if (!found.is_array()) return check(found);
    for (const json& number : found) check(number);
}

/// As a loss or a norm is.
bool is_size(double number) {
    return number >= 0 && std::isfinite(number);
}

bool is_weight(double number) {
    return number > 0 && number <= most_weight;
}

/// What a manifest says of its checkpoint. json::exception where it says it in another form.
Checkpoint parsed_manifest(const json& m, const std::string& path) {
    Checkpoint state;
    const std::uint64_t step = count_of(m, "step", path);
    state.step = static_cast<std::int64_t>(step);
    state.log_bytes = count_of(m, "log_bytes", path);
    state.name = m.value("name", "");
    state.config = m.at("config");
    for (const char* at : {"", "/train", "/train/optimizer"}) {
        const json::json_pointer member(at);
        if (!state.config.contains(member) || !state.config.at(member).is_object())
            fail_input(path, std::string("config") + at, "an object", "other JSON");
    }
    state.data = m.at("data").get<std::string>();
    state.seconds = m.at("seconds").get<double>();
    if (!(state.seconds >= 0 && state.seconds <= most_seconds))
        fail_input(path, "seconds", "a time of training", m.at("seconds").dump());
    state.isa = m.value("isa", "");
    state.base = m.value("base", "");
    state.early_stop = m.value("early_stop", true);
    state.overfitted = m.value("memorised", false);
    if (m.contains("read")) {
        state.inputs = DataOptions::from_json(m.at("read"));
        if (m.at("read").contains("weights"))
            check_numbers(m, "read/weights", path,
                          "positive numbers, at most " + grouped(static_cast<std::uint64_t>(most_weight)),
                          is_weight);
    }
    if (m.contains("evaluations") && !m.at("evaluations").is_null()) {
        for (const char* place : {"evaluations/step", "evaluations/since"})
            (void)count_of(m, place, path, step);
        state.best_loss = BestLoss::from_json(m.at("evaluations"));
        for (const char* place : {"evaluations/loss", "evaluations/last_loss"})
            check_numbers(m, place, path, "a loss, at least 0", is_size);
    }
    if (m.contains("texts")) state.texts = m.at("texts");
    if (m.contains("norms")) {
        (void)count_of(m, "norms/skipped", path, step);
        state.outliers = OutlierGate::from_json(m.at("norms"));
        check_numbers(m, "norms/last", path, "norms, at least 0", is_size);
    }
    return state;
}

/// Holds a checkpoint's files against the checksums of its manifest (at `path`), and finds its best model.
void verify_files(const json& sums, const std::string& folder, const std::string& path, Checkpoint& state) {
    if (!sums.is_object()) fail_input(path, "sha256", "an object", sums.type_name());
    const char* weights = sums.contains(best_adapter) ? best_adapter : best_model;
    for (const auto& [name, ignored] : sums.items())
        if (name != weights && name != moments_name && name != helpers_name && name != best_name)
            fail_input(path, "sha256", std::string(weights) + " and " + moments_name, name);
    const auto check = [&](const std::string& name, const std::string& hint) {
        if (!sums.contains(name)) fail_input(path, "sha256", "a checksum of " + name, "none");
        const std::string expected = sums.at(name).get<std::string>();
        const MappedFile file(folder + "/" + name);
        std::string found = sha256(file.text());
        if (found != expected) fail_input(file.path(), "sha256", expected, found, hint);
        return found;
    };
    for (const char* name : {weights, moments_name, helpers_name})
        if (name != helpers_name || sums.contains(name)) check(name, "the checkpoint is damaged");
    const std::string best = folder + "/" + best_name;
    if (!name_taken(best)) {
        state.best_loss = {};
        return;
    }
    state.best = best;
    state.best_sha256 = sums.contains(best_name)
                            ? check(best_name, "the checkpoint is damaged; without this file it goes on")
                            : sha256(MappedFile(best).text());  // of an older version
}

}  // namespace

void link_or_copy(const std::string& from, const std::string& to) {
    const fs::path target(to);
    const std::string temporary =
        (target.parent_path() / ("." + target.filename().string() + ".part")).string();
    std::error_code error;
    fs::remove(temporary, error);
    fs::create_hard_link(from, temporary, error);
    if (error)  // a file system without links, or another one
        return write_file(to, MappedFile(from).text(), Existing::replace_name);
    if (int failed = rename_file(temporary, to)) fail_errno(to, "", failed);
    fs::remove(temporary, error);  // rename does nothing where both are names of one file
}

void save_checkpoint(const std::string& folder, const Checkpoint& state, Learner& learner,
                     const TrainedModel& model, const Provenance& provenance) {
    make_folders(folder);
    remove_partial_checkpoints(folder);
    const std::string name = step_name(state.step), temporary = folder + "/" + std::string(partial) + name;
    make_folders(temporary);
    const Removed left{temporary};
    json sums;
    const std::string weights = model.start.model_name();
    sums[weights] = save_trained(temporary + "/" + weights, model, DType::f32, name, provenance);
    sums[moments_name] = write_floats(temporary + "/" + moments_name, moments_of(learner));
    if (const Floats helpers = helpers_of(learner); !helpers.empty())
        sums[helpers_name] = write_floats(temporary + "/" + helpers_name, helpers);
    if (!state.best.empty()) {
        link_or_copy(state.best, temporary + "/" + best_name);
        sums[best_name] = state.best_sha256;
    }
    json manifest = {{"step", state.step},
                     {"name", state.name},
                     {"data", state.data},
                     {"log_bytes", state.log_bytes},
                     {"seconds", state.seconds},
                     {"sha256", sums},
                     {"config", state.config},
                     {"isa", state.isa},
                     {"base", state.base},
                     {"early_stop", state.early_stop},
                     {"memorised", state.overfitted},
                     {"read", state.inputs.to_json()},
                     {"evaluations", state.best_loss.to_json()}};
    if (!state.texts.is_null()) manifest["texts"] = state.texts;
    if (!state.outliers.norms().empty()) manifest["norms"] = state.outliers.to_json();
    // A path may be no UTF-8: to go on, --data has to name it again.
    const std::string text = manifest.dump(1, ' ', false, json::error_handler_t::replace);
    write_file(temporary + "/manifest.json", text + "\n");
    put_in_place(temporary, folder, name);
    std::vector<std::string> all = checkpoints(folder);
    for (std::size_t i = 0; i + kept < all.size(); i++) remove_checkpoint(all[i]);
}

void remove_partial_checkpoints(const std::string& folder) {
    std::error_code ignored;
    for (const std::string& name : names_in(folder)) {
        const std::string path = folder + "/" + name;
        if (name.starts_with(replaced)) {
            const std::string stands = folder + "/" + name.substr(replaced.size());
            if (!fs::exists(stands, ignored)) (void)rename_file(path, stands);
            remove_all(path);
        }
        if (name.starts_with(partial)) remove_all(path);
    }
}

std::optional<std::string> newest_checkpoint(const std::string& folder) {
    std::vector<std::string> all = checkpoints(folder);
    if (all.empty()) return std::nullopt;
    return all.back();
}

Checkpoint read_newest_checkpoint(const std::string& folder, std::string& path) {
    const std::vector<std::string> all = checkpoints(folder);
    std::optional<Error> first;
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
        try {
            Checkpoint state = read_checkpoint(*at);
            if (const std::string name = step_name(state.step); !at->ends_with("/" + name))
                fail_input(*at + "/manifest.json", "step", "that of the folder's name",
                           std::to_string(state.step));
            if (first) note(std::string(first->what()) + "; going on from " + *at);
            path = *at;
            return state;
        } catch (const Error& error) {
            if (!first) first = error;
        }
    }
    if (first) throw Error(*first);
    fail(Exit::diverged, folder, "", "a checkpoint", "none");
}

Checkpoint read_checkpoint(const std::string& folder) {
    const std::string path = folder + "/manifest.json";
    const json manifest = parse_json(read_file(path), path);
    try {
        Checkpoint state = parsed_manifest(manifest, path);
        verify_files(manifest.value("sha256", json::object()), folder, path, state);
        return state;
    } catch (const json::exception&) {
        fail_input(path, "", "a checkpoint's manifest", "other JSON");
    }
}

void load_checkpoint(const std::string& folder, Learner& learner, const TrainingStart& start) {
    load_trained(folder + "/" + start.model_name(), learner, start);
    if (const Floats helpers = helpers_of(learner); !helpers.empty())
        read_floats(folder + "/" + helpers_name, helpers, "as this generator has");
    read_floats(folder + "/" + moments_name, moments_of(learner), "as this optimizer keeps");
}

}  // namespace linnet
