// GBNF, llama.cpp's notation of grammars (its grammars/README.md).
#pragma once
#include <string_view>

#include "generate/grammar/grammar.h"

namespace linnet {

/// A checked grammar whose root is the rule `root`. Rules are NAME ::= ALTERNATIVES; in them: "text" with the
/// escapes \n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH, [characters a-z] and [^others], . for any
/// character, names, ( groups ), the repetitions * + ? {n} {n,} {n,m} {,m}, and # comments. A rule ends with
/// its line, but goes on inside of brackets and where the next line begins with |. Error(Exit::input) naming
/// `file`, line and column.
Grammar read_gbnf(std::string_view text, std::string_view file);

}  // namespace linnet
