// Is a corpus what its index says?
#pragma once
#include <string>

namespace linnet {

/// Holds the shards of the corpus in `folder` against its index.json: sizes all, checksums (sha256) of a
/// sample of 128 MiB or, where `whole`, of all. Error(Exit::input) names the shard that is not what was
/// written.
void check_corpus(const std::string& folder, bool whole);

}  // namespace linnet
