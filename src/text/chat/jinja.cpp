// A chat template as model files carry one: a program in Jinja, which other runtimes run, and linnet reads
// back from the comment that it begins with.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/chat/template.h"

namespace linnet {
namespace {

constexpr std::string_view begins_ours = "{# linnet: ", ends_ours = " #}";

/// As a data file says it, without what only tells one template from others.
std::string as_json(const ChatTemplate& form) {
    const auto around = [](const ChatTemplate::Around& a) {
        return nlohmann::ordered_json{{"before", a.before}, {"after", a.after}};
    };
    nlohmann::ordered_json json = {{"name", form.name},
                                   {"system", around(form.system)},
                                   {"user", around(form.user)},
                                   {"assistant", around(form.assistant)}};
    if (form.system_in_user) json["system_in_user"] = true;
    if (form.trim) json["trim"] = true;
    if (!form.ends.empty()) json["ends"] = form.ends;
    if (form.continues) json["continues"] = true;
    std::string text;
    for (char c : json.dump()) {
        if (c == '#')
            text += "\\u0023";  // "#}" would end the comment
        else
            text += c;
    }
    return text;
}

/// A string literal of Jinja.
std::string literal(std::string_view text) {
    std::string out = "'";
    for (char c : text) {
        if (c == '\\' || c == '\'') out += '\\';
        if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '\t')
            out += "\\t";
        else
            out += c;
    }
    return out + "'";
}

/// Prints a template's text, "{bos}" and "{eos}" as the variables that runtimes set.
std::string printed(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t token = std::min(text.find("{bos}"), text.find("{eos}"));
        if (token > 0) out += "{{ " + literal(text.substr(0, token)) + " }}";
        if (token == std::string_view::npos) break;
        out += text[token + 1] == 'b' ? "{{ bos_token }}" : "{{ eos_token }}";
        text.remove_prefix(token + 5);
    }
    return out;
}

}  // namespace

std::string jinja_of(const ChatTemplate& form, bool begins) {
    const auto content = [&](const std::string& value) {
        return "{{ " + value + (form.trim ? " | trim }}" : " }}");
    };
    const auto around = [&](const ChatTemplate::Around& a, const std::string& value) {
        return printed(a.before) + content(value) + printed(a.after);
    };
    const auto system = [&](const char* when) {
        return std::string("{% if ") + when + " %}" + around(form.system, "system") + "{% endif %}";
    };
    std::string out(begins_ours);
    out += as_json(form);
    out += ends_ours;
    out +=
        "{% if messages[0]['role'] == 'system' %}{% set system = messages[0]['content'] %}"
        "{% set turns = messages[1:] %}{% else %}{% set system = '' %}{% set turns = messages %}{% endif %}";
    if (begins) out += "{{ bos_token }}";
    if (!form.system_in_user) out += system("system");
    out += "{% for message in turns %}{% if message['role'] == 'user' %}" + printed(form.user.before);
    if (form.system_in_user) out += system("loop.first and system");
    out += content("message['content']") + printed(form.user.after) +
           "{% elif message['role'] == 'assistant' %}" + around(form.assistant, "message['content']") +
           "{% endif %}{% endfor %}";
    const std::string asks = printed(without_last_spaces(form.assistant.before));
    if (!asks.empty()) out += "{% if add_generation_prompt %}" + asks + "{% endif %}";
    return out;
}

bool is_linnets_jinja(std::string_view source) {
    return source.starts_with(begins_ours);
}

std::optional<ChatTemplate> template_in(std::string_view source, std::string_view file,
                                        std::string_view place) {
    if (!is_linnets_jinja(source)) return std::nullopt;
    source.remove_prefix(begins_ours.size());
    const std::size_t end = source.find(ends_ours);
    if (end == std::string_view::npos) return std::nullopt;
    ChatTemplate form = parse_chat_template(source.substr(0, end), place_in(file, place));
    if (form.name.empty() || form.name.find_first_of("\r\n") != std::string::npos)
        form.name = "the file's own";  // a name is printed within a line
    return form;
}

}  // namespace linnet
