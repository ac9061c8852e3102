#include "data/corpus_index.h"

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/split.h"
#include "data/corpus_progress.h"
#include "data/layouts.h"

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;

/// Typed access that names FILE and the key in what it refuses.
struct Fields {
    const Json& object;
    const std::string& file;
    std::string where;

    const Json& at(const char* key) const {
        if (!object.is_object() || !object.contains(key)) fail_input(file, where + key, "a value", "nothing");
        return object[key];
    }
    std::string text(const char* key) const {
        if (!at(key).is_string()) fail_input(file, where + key, "a string", at(key).type_name());
        return at(key).get<std::string>();
    }
    std::uint64_t number(const char* key) const {
        if (!at(key).is_number_unsigned()) fail_input(file, where + key, "a count", at(key).type_name());
        return at(key).get<std::uint64_t>();
    }
    /// At most 2^53, so that sums of them are exact and stay in range.
    std::uint64_t count(const char* key) const {
        const Json& value = at(key);
        if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{1} << 53)
            fail_input(file, where + key, "a count", value.is_number() ? value.dump() : value.type_name());
        return value.get<std::uint64_t>();
    }
    std::string sha256(const char* key) const {
        std::string hex = text(key);
        if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdef") != std::string::npos)
            fail_input(file, where + key, "64 hexadecimal digits", hex.empty() ? "none" : hex);
        return hex;
    }
    const Json& array(const char* key) const {
        if (!at(key).is_array()) fail_input(file, where + key, "an array", at(key).type_name());
        return at(key);
    }
};

CorpusShard read_shard(const Json& json, const std::string& file, const std::string& where) {
    Fields f{json, file, where};
    CorpusShard shard{f.text("file"),    f.text("split"),  f.count("documents"),
                      f.count("tokens"), f.count("bytes"), f.text("sha256")};
    if (shard.file.find('/') != std::string::npos)
        fail_input(file, where + "file", "a name inside the folder", shard.file);
    if (shard.split != split_names[0] && shard.split != split_names[1])
        fail_input(file, where + "split", joined(split_names, " or "), shard.split);
    return shard;
}

Json shard_json(const CorpusShard& shard) {
    return {{"file", shard.file},     {"split", shard.split}, {"documents", shard.documents},
            {"tokens", shard.tokens}, {"bytes", shard.bytes}, {"sha256", shard.sha256}};
}

Json parse(const std::string& file) {
    const std::string text = read_file(file, std::size_t{1} << 28);
    Json json = parse_or_discard<Json>(text);
    if (!json.is_object())
        fail_input(file, "", "JSON", "something else", "a folder that linnet corpus wrote");
    return json;
}

std::string dump(const Json& json) {
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string progress_path(const std::string& folder) {
    return folder + "/" + corpus_progress_name;
}

}  // namespace

CorpusIndex read_corpus_index(const std::string& folder) {
    std::string file = folder + "/" + corpus_index_name;
    Json json = parse(file);
    Fields fields{json, file, ""};
    if (fields.text("format") != corpus_format)
        fail_input(file, "format", corpus_format, fields.text("format"));
    CorpusIndex index;
    if (json.contains("layout")) index.layout = fields.text("layout");
    if (!find_layout(index.layout))
        fail_input(file, "layout", "one of " + joined(layout_names()), index.layout);
    std::uint64_t vocab_size = fields.count("vocab_size");
    if (vocab_size == 0 || vocab_size > 0x7FFFFFFF)
        fail_input(file, "vocab_size", "a positive 31-bit number", std::to_string(vocab_size));
    index.vocab_size = static_cast<TokenId>(vocab_size);
    index.tokenizer = fields.text("tokenizer");
    index.tokenizer_sha256 = fields.sha256("tokenizer_sha256");
    if (fields.at("validation_fraction").is_number())
        index.validation_fraction = fields.at("validation_fraction").get<double>();
    index.documents = fields.count("documents");
    index.tokens = fields.count("tokens");
    index.bytes = fields.count("bytes");
    index.skipped = fields.count("skipped");
    const Json& shards = fields.array("shards");
    for (std::size_t i = 0; i < shards.size(); i++) {
        std::string where = "shards[" + std::to_string(i) + "].";
        index.shards.push_back(read_shard(shards[i], file, where));
        if (index.shards.back().file.empty()) fail_input(file, where + "file", "a name", "none");
        Fields{shards[i], file, where}.sha256("sha256");
    }
    return index;
}

std::string corpus_index_json(const CorpusIndex& index) {
    Json json;
    json["format"] = corpus_format;
    json["layout"] = index.layout;
    json["vocab_size"] = index.vocab_size;
    json["token_bytes"] = find_layout(index.layout)->token_bytes(index.vocab_size);
    json["tokenizer"] = index.tokenizer;
    json["tokenizer_sha256"] = index.tokenizer_sha256;
    json["validation_fraction"] = index.validation_fraction;
    json["documents"] = index.documents;
    json["tokens"] = index.tokens;
    json["bytes"] = index.bytes;
    json["skipped"] = index.skipped;
    json["shards"] = Json::array();
    for (const CorpusShard& shard : index.shards) json["shards"].push_back(shard_json(shard));
    return dump(json);
}

bool read_corpus_progress(const std::string& folder, CorpusProgress& progress) {
    std::string file = progress_path(folder);
    if (!name_taken(file)) return false;
    Json json = parse(file);
    Fields fields{json, file, ""};
    progress = {};
    if (!fields.at("settings").is_object())
        fail_input(file, "settings", "an object", fields.at("settings").type_name());
    for (const auto& [key, value] : fields.at("settings").items()) {
        if (!value.is_string()) fail_input(file, "settings." + key, "a string", value.type_name());
        progress.settings.emplace_back(key, value.get<std::string>());
    }
    progress.batches = fields.count("batches");
    progress.input_hash = fields.number("input_hash");
    progress.replaces = json.contains("replaces");
    for (int i = 0; i < 2; i++) {
        std::string where = std::string(split_names[i]) + ".";
        Fields split{fields.at(split_names[i]), file, where};
        for (const Json& shard : split.array("finished"))
            progress.splits[i].finished.push_back(read_shard(shard, file, where + "finished."));
        progress.splits[i].open = read_shard(split.at("open"), file, where + "open.");
    }
    return true;
}

void write_corpus_progress(const std::string& folder, const CorpusProgress& progress) {
    Json json;
    json["settings"] = Json::object();
    for (const auto& [key, value] : progress.settings) json["settings"][key] = value;
    json["batches"] = progress.batches;
    json["input_hash"] = progress.input_hash;
    if (progress.replaces) json["replaces"] = true;
    for (int i = 0; i < 2; i++) {
        Json finished = Json::array();
        for (const CorpusShard& shard : progress.splits[i].finished) finished.push_back(shard_json(shard));
        CorpusShard open = progress.splits[i].open;
        open.split = split_names[i];
        json[split_names[i]] = {{"finished", std::move(finished)}, {"open", shard_json(open)}};
    }
    write_file(progress_path(folder), dump(json), Existing::replace_name);
}

void remove_corpus_progress(const std::string& folder) {
    for (const std::string& name : names_in(folder))
        if (name.ends_with(".starts") && find_layout("megatron")->owns(name)) remove_all(folder + "/" + name);
    if (!remove_all(progress_path(folder))) fail_errno(progress_path(folder), "removing", EIO);
}

}  // namespace linnet
