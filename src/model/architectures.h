// How GGUF spells what a config says, one data file per architecture (models/architectures/README.md explains
// the rows): metadata keys, tensor names.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "model/architecture_files.h"
#include "model/config/config.h"

namespace linnet {

/// A metadata key "<architecture>.<key>". One of: it holds `field`; its only supported value is `equals`; it
/// is `ignored`; it tells which layers are marked, those with `marks`. Values of `missing` and of constants
/// may be `derived` from other fields.
struct ArchitectureKey {
    std::string key, field;
    bool required = false, per_layer = false, ignored = false;
    bool inverse = false;       // the key says 1 / field
    bool positive = false;      // the key never says 0 or less
    std::vector<bool> layers;   // the row is for these layers alone, in turn; empty: for all
    std::string marked;         // "marked", "unmarked": those are told by the row with `marks`
    std::string marks;          // a field that is 0 in unmarked layers; `missing` are the marks of most files
    std::string zero_means;     // a field of 0 is told as this field's value
    std::string unit;           // the key says field / this field's value
    bool largest = false;       // of a field that differs by layer the key says the largest value
    nlohmann::json zero_where;  // an object, field -> value: the key says 0 in layers where it is so
    nlohmann::json missing;  // the field's value where the file lacks the key; null: the config's own default
    nlohmann::json values;   // an object: what the key may say -> the field's value; null: as it stands
    /// A word of `values` -> an object, field -> value: the word is written where all are so.
    nlohmann::json beside;
    nlohmann::json equals;  // null: any

    bool for_no_layer() const;  // for marked layers, and none is
};

/// One tensor of the file that holds the rows of one or more parameters, one after another. Names are without
/// ".weight" and ".bias"; "{layer}" stands for the number.
struct ArchitectureTensor {
    std::string tensor;
    std::vector<std::string> holds;  // none: the tensor is ignored
    std::string beside;              // the row is for models that have this parameter too; "": for all
    bool written = true;             // false: other programs' files may have it, ours do not
};

/// A field told by whether a tensor (its whole name) is in the file; of several rows for one field, one that
/// finds its tensor decides. A bias that has a row and is not there counts as 0 where others of its kind are.
struct TensorPresence {
    std::string tensor, field;
    nlohmann::json present, absent;  // null: as a key says
    bool each = false;               // layer by layer
    bool written = true;             // false: other programs' files may have the tensor, ours do not

    bool is_bias() const { return tensor.ends_with(".bias"); }
};

struct Architecture {
    std::string name;
    bool partial = false;      // not a family: others are like it
    int order = 100;           // of several that could say a config, the lowest is written
    nlohmann::json constants;  // field -> value: what the architecture means without saying
    std::string config_key;    // where this key holds the whole config as JSON; then there are no `keys`
    std::vector<ArchitectureKey> keys;
    std::vector<ArchitectureTensor> tensors;
    std::vector<TensorPresence> presence;
    std::map<std::string, std::pair<std::size_t, int>, std::less<>>
        parts;  // parameter -> row of `tensors`, part
    std::set<std::string, std::less<>> ignored_tensors;
    nlohmann::json huggingface;  // the file's own section of that name (model/huggingface/)

    const ArchitectureKey* marks() const;  // the row that says which layers are marked; null: none is
};

/// A data file's text, checked: Error(Exit::input) with `path` and the place in it. What its key "like" names
/// is one of `bases`, by path.
Architecture parse_architecture(std::string_view text, const std::string& path,
                                std::span<const EmbeddedFile> bases = {});

/// What architecture_files()[i] says, a partial one, too. Each file is read when it is asked for first, and
/// what these three give of it is one object.
const Architecture& architecture_of_file(std::size_t i);
/// Every architecture in the executable, by `order`, then name. The last is our own, which can say any
/// config. Reads all files, which takes 50 ms.
const std::vector<const Architecture*>& architectures();
/// The one of them that has this name; null where none has. Reads its file alone: a model is opened by it.
const Architecture* architecture_named(std::string_view name);

/// The first architecture that can say all of `config`.
const Architecture& architecture_of(const ModelConfig& config);

/// `architecture` for a model of which these layers, in turn, are marked.
Architecture with_marks(Architecture architecture, const std::vector<bool>& marked);
/// The layers that a config with these values marks; none where the architecture marks none.
std::vector<bool> marked_layers(const Architecture& architecture, const nlohmann::json& values,
                                std::int64_t layers);

/// What `config` would become if only this architecture's rows were kept of it; nothing where they cannot
/// say one of its values.
std::optional<ModelConfig> through(const Architecture& architecture, const ModelConfig& config);

/// GGUF has a name for `config`, so that other runtimes can load it.
bool has_standard_architecture(const ModelConfig& config);

/// The config of a GGUF file, resolved; sets `architecture` to its row. Metadata of the architecture that is
/// not understood is an error.
ModelConfig read_config(const Gguf& file, const Architecture*& architecture);
/// The same, as a file of this architecture.
ModelConfig read_config(const Gguf& file, const Architecture& architecture);

/// The number that a constant or a `missing` stands for: itself, or, of an object {"from": field, "times": a,
/// "power": p}, a · field^p, with "over" another field: a · (field / that)^p. Null where "only", an object of
/// fields and values, does not hold. With "multiple" it is rounded up to one of that. `values` has every
/// field's value.
nlohmann::json derived(const nlohmann::json& value, const nlohmann::json& values);

// For other spellings of a config by such rows (model/huggingface/).

/// Whether a field has whole numbers, by its value.
bool is_whole(const nlohmann::json& value);
/// Error(Exit::input) unless a key's list has as many values as the config has layers.
void require_one_per_layer(const std::string& file, const std::string& key, std::size_t values,
                           const ModelConfig& config);
/// Every field's value by its key.
nlohmann::json values_of(ModelConfig config);
/// One of them, of a table that is there already: making one costs as much as reading a small file.
nlohmann::json value_of(const std::vector<Field>& fields, const std::string& key);
/// derived() with the values of a table, which are gathered for an object alone.
nlohmann::json derived(const nlohmann::json& value, const std::vector<Field>& fields);
/// `name` with the number in the place of "{layer}".
std::string with_layer(std::string name, const std::string& layer);
/// "blk.12.attn_q.bias" -> "blk.{layer}.attn_q", "12", ".bias".
struct NameParts {
    std::string stem, layer, suffix;
};
NameParts parts_of(std::string_view name);

/// How far from the model's end a parameter stands: 0 behind the blocks, 1 in the last one, and so on to one
/// more than there are blocks, before them. Encoder and decoder each count their own; what stands between the
/// two counts with the encoder's last block.
std::int64_t depth_of(std::string_view parameter, const ModelConfig& config);
/// Whether a setting of a model matters in training alone ("model.dropout"): no file of the ecosystem says
/// it, and a run from a model may change it.
bool of_training(std::string_view key);
/// The field's value `now`, with `value` in the layers that the row is for.
nlohmann::json placed(const ArchitectureKey& row, const nlohmann::json& now, const nlohmann::json& value);
/// What the row says of its field: the value in the row's layers, of all fields' values. Null where it
/// differs there, or where the key has no word for it.
nlohmann::json field_value(const ArchitectureKey& row, const nlohmann::json& values);
/// What the key says, from the values of all fields: a number or a truth value where the row's text is one.
nlohmann::json key_value(const ArchitectureKey& row, const nlohmann::json& fields);

/// Writes general.architecture and the architecture's keys.
void write_config(GgufWriter& out, const Architecture& architecture, ModelConfig config);

/// Where a parameter's rows stand: the tensor's name, and which part of it they are (0 where it has no
/// other).
struct TensorPlace {
    std::string tensor;
    int part = 0;
    const ArchitectureTensor* row = nullptr;  // null: the tensor bears the parameter's name
    std::string beside{};                     // row->beside of this layer
};
TensorPlace place_of(const Architecture& architecture, const std::string& parameter);
/// Of a place in a row: the own names of all parameters that the row's tensor would hold there.
std::vector<std::string> own_names(const TensorPlace& place, const std::string& parameter);

/// Whether the architecture says that this tensor of a file means nothing.
bool is_ignored(const Architecture& architecture, std::string_view tensor);

}  // namespace linnet
