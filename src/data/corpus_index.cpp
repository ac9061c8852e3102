#include "data/corpus_index.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view format_name = "linnet-corpus";

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
    std::uint64_t count(const char* key) const {
        if (!at(key).is_number_unsigned()) fail_input(file, where + key, "a count", at(key).dump());
        return at(key).get<std::uint64_t>();
    }
};

}  // namespace

CorpusIndex read_corpus_index(const std::string& folder) {
    std::string file = folder + "/index.json";
    Json json = Json::parse(read_file(file, std::size_t{1} << 28), nullptr, false);
    if (json.is_discarded())
        fail_input(file, "", "JSON", "something else", "a folder that linnet corpus wrote");
    Fields fields{json, file, ""};
    if (fields.text("format") != format_name)
        fail_input(file, "format", std::string(format_name), fields.text("format"));
    CorpusIndex index;
    std::uint64_t vocab_size = fields.count("vocab_size");
    if (vocab_size == 0 || vocab_size > 0x7FFFFFFF)
        fail_input(file, "vocab_size", "a positive 31-bit number", std::to_string(vocab_size));
    index.vocab_size = static_cast<TokenId>(vocab_size);
    index.tokenizer = fields.text("tokenizer");
    index.tokenizer_sha256 = fields.text("tokenizer_sha256");
    if (fields.at("validation_fraction").is_number())
        index.validation_fraction = fields.at("validation_fraction").get<double>();
    index.documents = fields.count("documents");
    index.tokens = fields.count("tokens");
    index.bytes = fields.count("bytes");
    index.skipped = fields.count("skipped");
    const Json& shards = fields.at("shards");
    if (!shards.is_array()) fail_input(file, "shards", "an array", shards.type_name());
    for (std::size_t i = 0; i < shards.size(); i++) {
        Fields f{shards[i], file, "shards[" + std::to_string(i) + "]."};
        CorpusShard shard{f.text("file"),    f.text("split"),  f.count("documents"),
                          f.count("tokens"), f.count("bytes"), f.text("sha256")};
        if (shard.file.empty() || shard.file.find('/') != std::string::npos)
            fail_input(file, f.where + "file", "a name inside the folder", shard.file);
        if (shard.split != "train" && shard.split != "validation")
            fail_input(file, f.where + "split", "train or validation", shard.split);
        index.shards.push_back(std::move(shard));
    }
    return index;
}

std::string corpus_index_json(const CorpusIndex& index) {
    Json json;
    json["format"] = format_name;
    json["vocab_size"] = index.vocab_size;
    json["token_bytes"] = index.vocab_size > 65536 ? 4 : 2;
    json["tokenizer"] = index.tokenizer;
    json["tokenizer_sha256"] = index.tokenizer_sha256;
    json["validation_fraction"] = index.validation_fraction;
    json["documents"] = index.documents;
    json["tokens"] = index.tokens;
    json["bytes"] = index.bytes;
    json["skipped"] = index.skipped;
    json["shards"] = Json::array();
    for (const CorpusShard& shard : index.shards)
        json["shards"].push_back({{"file", shard.file},
                                  {"split", shard.split},
                                  {"documents", shard.documents},
                                  {"tokens", shard.tokens},
                                  {"bytes", shard.bytes},
                                  {"sha256", shard.sha256}});
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace linnet
