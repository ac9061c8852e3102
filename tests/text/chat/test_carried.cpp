// Which of the chat templates that a model and its adapters carry counts, and when each is read.
#include "text/chat/carried.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "text/chat/template.h"

using namespace linnet;

namespace {

const std::string unknown = "{{ 'Human says: ' }}";

std::string known(const char* name) {
    return jinja_of(open_chat_template(name, "test"), false);
}

CarriedTemplate carrying(const std::string& file, const std::string& source) {
    return {[=] { return ChosenTemplate{source, file, "key"}; }};
}

std::string chosen(const std::vector<CarriedTemplate>& by_rank) {
    return choose_template(by_rank).file;
}

}  // namespace

TEST_CASE("an adapter's chat template counts before its model's, unless linnet knows the model's alone") {
    const CarriedTemplate model = carrying("model", known("chatml")), other = carrying("other", unknown);
    CHECK(chosen({carrying("adapter", known("zephyr")), model}) == "adapter");
    CHECK(choose_template(std::vector{carrying("adapter", known("zephyr")), model}).source ==
          known("zephyr"));
    CHECK(chosen({carrying("adapter", ""), model}) == "model");
    CHECK(chosen({CarriedTemplate(), model}) == "model");
    CHECK(chosen({carrying("adapter", unknown), model}) == "model");
    CHECK(chosen({carrying("last", unknown), carrying("first", known("zephyr")), model}) == "first");
    // Of none that it knows the first, for an error or another program.
    CHECK(chosen({carrying("adapter", unknown), other}) == "adapter");
    CHECK(chosen({carrying("adapter", unknown), carrying("model", "")}) == "adapter");
    // One of linnet's own that is damaged is none that it can render.
    CHECK(chosen({carrying("adapter", "{# linnet: {} #}"), model}) == "model");
    CHECK(choose_template(std::vector{carrying("adapter", unknown)}).place == "key");
    CHECK(choose_template(std::vector{carrying("adapter", "")}).source.empty());
    CHECK(choose_template({}).source.empty());
}

TEST_CASE("a chat template behind one that serves is not read, and each that is read is read once") {
    int reads = 0;
    const CarriedTemplate counted{[&] {
        reads++;
        return ChosenTemplate{known("chatml"), "adapter", "key"};
    }};
    const CarriedTemplate never{[]() -> ChosenTemplate { throw std::logic_error("read"); }};
    CHECK(chosen({counted, never}) == "adapter");
    CHECK(reads == 1);
}
