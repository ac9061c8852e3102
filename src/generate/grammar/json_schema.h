// JSON Schema (2020-12 and what draft 7 writes otherwise) as a grammar of the JSON texts that fulfil it.
#pragma once
#include <string_view>

#include "generate/grammar/grammar.h"

namespace linnet {

/// A checked grammar. Every text of it fulfils the schema; not every value that does is a text of it: members
/// come in the order of `properties`, then those of additionalProperties; where a schema names properties and
/// is silent about others there are none (prefixItems likewise); a schema that says nothing of the type has
/// those that its keywords are about. Error(Exit::input) naming `file` and the path of what is not supported,
/// or that nothing can fulfil.
Grammar read_json_schema(std::string_view text, std::string_view file);

}  // namespace linnet
