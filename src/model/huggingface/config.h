// How Hugging Face's folders spell a family: the keys of config.json and the names of tensors, read from the
// sections "huggingface" of models/architectures/*.json (its README explains the rows).
#pragma once
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/architectures.h"

namespace linnet {

/// A key of config.json ("rope_scaling.factor": of an object in it). Where `when` names other keys, the row
/// counts only where these have one of the texts ("" stands for none; "!a": any but a).
struct HuggingFaceKey : ArchitectureKey {
    bool written = true;       // false: understood, not written
    bool writes_null = false;  // of an ignored key: null is written
    double power = 1;          // the field is key ^ power · times
    nlohmann::json times;      // a number, a field, or an object as in constants; null: 1
    nlohmann::json zero;       // such an object: a field of 0 stands for this value
    nlohmann::json if_null;    // the field's value where the key is there, and null
    nlohmann::json write;      // of an ignored key: what is written; with values: of several words the one
    nlohmann::json never;      // what the key cannot say of its field
    nlohmann::json silent;     // field -> value: not written where all of them are so
    std::string offset;     // a key: the field has one value in layers i with i % key == that, else another
    nlohmann::json marked;  // the one value; null: what the field has
    nlohmann::json unmarked;
    std::map<std::string, std::vector<std::string>> when;

    /// Reading the field takes other fields.
    bool reckoned() const { return !times.is_null() || power != 1 || !zero.is_null(); }
};

/// What stands in a tensor for a parameter x: x itself, x - 1, or log(-x).
enum class ValueTransform { same, less_one, log };

/// One tensor, or where the name has "{part}" so many, and the parameters whose rows it holds one after
/// another. In names "{layer}" stands for the number.
struct HuggingFaceTensor {
    std::string tensor;              // without .weight and .bias
    std::vector<std::string> holds;  // none: ignored, and `tensor` is the whole name
    std::string parts;               // field: so many tensors hold a parameter's rows in turn, each as many
    std::string
        groups;  // field: the tensor is so many groups of rows, each with its share of every parameter
    std::string matrices;              // field: likewise, and the tensor has a first dimension of so many
    std::vector<std::string> permute;  // of each of `holds`, "": none. Field: each of so many heads has its
                                       // two halves one behind the other, not in turn
    std::string beside;                // the row is for models that have this parameter too
    bool transpose = false;            // columns and rows exchanged
    std::string stacks;                // field: so many matrices one below another, each transposed by itself
    bool channels = false;             // [channels, 1, width of a convolution]
    bool flat = false;                 // a vector, which GGUF has as a matrix
    bool whole = false;                // the name ends here: no .weight, no .bias
    ValueTransform transform = ValueTransform::same;  // of weights; biases are the same
    bool spare = false;                               // may be there where the model lacks the parameter
};

/// A value that config.json has as a list or by a formula.
struct HuggingFaceMade {
    std::string by;         // a row of the table in config.cpp
    std::string from;       // key
    std::string parameter;  // a vector, or
    std::string field;
    std::map<std::string, std::vector<std::string>> when;
};

/// Whether vectors made `by` that rule read this member of `from`.
bool made_reads(const std::string& by, const std::string& member);

struct HuggingFaceFamily {
    std::string model_type, class_name;
    const Architecture* gguf;  // what the family is in GGUF
    nlohmann::json constants;  // field -> value
    std::string prefix;        // of tensors' names, which some files lack
    std::string vocabulary;    // the key with the vocabulary's size
    std::string text;  // of a model of more than text: the object that is the config.json of its text part
    std::vector<std::pair<std::string, std::string>> names;  // what tensors' names begin with -> in its place
    std::set<std::string> also;  // GGUF's architectures that go out as this family, too
    std::vector<std::pair<std::string, std::string>> aliases;  // another key -> key; "a.*" -> "b.*"
    std::vector<HuggingFaceKey> keys;
    std::vector<HuggingFaceTensor> tensors;
    std::vector<TensorPresence> presence;
    std::vector<HuggingFaceMade> made;
    std::multimap<std::string, std::pair<std::size_t, int>, std::less<>> places;  // parameter -> row, part
    std::set<std::string, std::less<>> ignored;
};

/// The folder whose config.json sentence-transformers keep an encoder's pooling in. Here it is an object of
/// that name in the model's own config.json.
constexpr std::string_view pooling_folder = "1_Pooling";

/// Under this key a GGUF file that was made of a folder keeps its config.json.
inline constexpr const char* kept_config = "linnet.huggingface.config";

/// Every family, in the order of architectures(), and of the files.
const std::vector<HuggingFaceFamily>& huggingface_families();
/// The section of one file, checked: Error(Exit::input) with `path` and the place in it. `bases` has the
/// files that it may be like.
HuggingFaceFamily parse_huggingface(const Architecture& file, const std::string& path,
                                    std::span<const EmbeddedFile> bases);

/// The members of config.json by their paths, nulls left out, other names for keys resolved.
class HuggingFaceConfig {
  public:
    /// Error(Exit::input) naming `path` where `text` is no JSON object or of no family.
    HuggingFaceConfig(std::string_view text, std::string path);

    const HuggingFaceFamily& family() const { return *family_; }
    /// The family of which this is the text part; null where it is all.
    const HuggingFaceFamily* around() const { return around_; }
    /// The text, of a text part what its own config.json would be.
    const std::string& text() const { return text_; }
    const std::string& path() const { return path_; }
    /// Null where there is none.
    nlohmann::json value(const std::string& key) const;
    /// Whether it is an object, of which there are members.
    bool has_members(const std::string& key) const;
    /// Keys that the family has no row for.
    std::vector<std::string> unknown() const;
    bool applies(const std::map<std::string, std::vector<std::string>>& when) const;

    /// The model's config, resolved; `there` says whether a tensor is, `vocabulary` how many rows the
    /// embedding has.
    ModelConfig read(const std::function<bool(const std::string&)>& there, std::int64_t vocabulary) const;
    /// The vectors that config.json holds: a parameter's name to its values.
    std::map<std::string, std::vector<float>> vectors(const ModelConfig& config) const;

  private:
    friend class HuggingFaceConfigReader;
    std::string path_, text_;
    const HuggingFaceFamily *family_ = nullptr, *around_ = nullptr;
    std::map<std::string, nlohmann::json> values_;
    std::set<std::string> nulls_;  // keys that are there without a value
};

/// config.json for `config`, whose `vectors` (rope_freqs and the like) it has to say too; null where the
/// family cannot say all of it.
nlohmann::ordered_json huggingface_config(const HuggingFaceFamily& family, const ModelConfig& config,
                                          const std::map<std::string, std::vector<float>>& vectors);

/// The first field by which two configs differ in GGUF, which has numbers as floats; "" where none does.
std::string differing_field(const ModelConfig& a, const ModelConfig& b);
bool same_settings(const ModelConfig& a, const ModelConfig& b);

/// The shortest decimal that is this float, as a double: 1e-05 rather than 9.99999974737875e-06.
double shortest(double value);

}  // namespace linnet
