#include "data/labelled/lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/fields.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "base/split.h"
#include "data/document_reader.h"
#include "data/documents.h"
#include "data/line_reader.h"
#include "data/utf8_check.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

class Reader {
  public:
    Reader(LabelledKind kind, const LabelledOptions& options) : kind_(kind), options_(options) {
        if (options_.fields.empty())
            options_.fields = kind == LabelledKind::pairs     ? std::vector<std::string>{"source", "target"}
                              : kind == LabelledKind::classes ? std::vector<std::string>{"text", "label"}
                                                              : std::vector<std::string>{"words", "tags"};
        const std::size_t most = kind == LabelledKind::classes ? 3 : 2;
        if (options_.fields.size() < 2 || options_.fields.size() > most)
            fail(Exit::usage, "", "--fields", most == 3 ? "2 or 3 names" : "2 names",
                 std::to_string(options_.fields.size()));
    }

    LabelledData read() {
        Sha256 sum;
        for (const std::string& path : expand_inputs(options_.inputs, options_.except)) {
            LineReader lines(path);
            found_.files.push_back(lines.path());
            const bool jsonl = reads_as_jsonl(path, options_.format);
            for (std::string line; lines.next(line);) {
                sum.update(line), sum.update("\n");
                found_.bytes += line.size() + 1;
                line_ = lines.number();
                if (!line.empty()) found_.act_or_skip(options_.skip_bad, [&] { take(line, jsonl); });
            }
        }
        found_.sha256 = sum.hex();
        if (found_.all.empty())
            fail_input(options_.inputs.size() == 1 ? options_.inputs[0] : "--data", "",
                       "at least one example", found_.bad_alone());
        return std::move(found_);
    }

  private:
    [[noreturn]] void bad(const std::string& expected, const std::string& got) const {
        fail_input(found_.files.back(), "line " + std::to_string(line_), expected, got);
    }

    void take(std::string_view line, bool jsonl) {
        if (const std::size_t fault = valid_utf8_prefix(line); fault < line.size())
            bad("UTF-8", utf8_fault_name(line, fault));
        const std::vector<std::string> parts = jsonl ? members(line) : columns(line);
        LabelledExample e;
        e.file = static_cast<std::uint32_t>(found_.files.size() - 1), e.line = line_;
        e.first = parts[0], e.two = parts.size() == 3;
        (kind_ == LabelledKind::pairs ? e.second : e.label) = parts.back();
        if (e.two) e.second = parts[1];
        if (kind_ == LabelledKind::tags) {
            const std::size_t words = split(e.first, ' ').size(), tags = split(e.label, ' ').size();
            if (words != tags) bad("as many tags as words, " + std::to_string(words), std::to_string(tags));
        }
        found_.all.push_back(std::move(e));
    }

    std::vector<std::string> columns(std::string_view line) const {
        std::vector<std::string> parts;
        for (std::size_t begin = 0; begin <= line.size();) {
            const std::size_t end = std::min(line.find('\t', begin), line.size());
            parts.emplace_back(line.substr(begin, end - begin));
            begin = end + 1;
        }
        const char* form = kind_ == LabelledKind::pairs ? "a source, a tab, a target"
                           : kind_ == LabelledKind::classes
                               ? "a text, a tab, a label (or two texts and a label)"
                               : "words, a tab, their tags";
        const std::size_t most = kind_ == LabelledKind::classes ? 3 : 2;
        if (parts.size() < 2 || parts.size() > most)
            bad(form, parts.size() == 1 ? "no tab" : std::to_string(parts.size() - 1) + " tabs");
        for (std::size_t i = 0; i < parts.size(); i++)
            if (parts[i].find_first_not_of(' ') == std::string::npos)
                bad(form, i == 0 ? "nothing before the tab" : "nothing behind a tab");
        return parts;
    }

    std::vector<std::string> members(std::string_view line) const {
        const nlohmann::json object = parse_json(line, found_.files.back(), line_);
        std::vector<std::string> parts;
        if (!object.is_object()) bad("a JSON object", object.type_name());
        for (const std::string& field : options_.fields) {
            if (!object.contains(field)) bad("the field " + field, "an object without it");
            const nlohmann::json& value = object[field];
            if (!value.is_string() && !value.is_number_integer())
                bad("a string in the field " + field, value.type_name());
            parts.push_back(value.is_string() ? value.get<std::string>() : value.dump());
            if (parts.back().find_first_not_of(" \n\t") == std::string::npos)
                bad("a text in the field " + field, "an empty one");
        }
        return parts;
    }

    LabelledKind kind_;
    LabelledOptions options_;
    LabelledData found_;
    std::uint64_t line_ = 0;
};

}  // namespace

std::vector<std::string> field_names(std::string_view list) {
    const std::vector<std::string_view> names = split(list, ',');
    return {names.begin(), names.end()};
}

std::string LabelledData::place(const LabelledExample& example) const {
    return files[example.file] + ": line " + std::to_string(example.line);
}

LabelledData read_labelled(LabelledKind kind, const LabelledOptions& options) {
    return Reader(kind, options).read();
}

bool held_out(const LabelledExample& example, double fraction) {
    return held_out(hash_bytes(example.first), fraction);
}

}  // namespace linnet
