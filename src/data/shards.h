// Token shards: the files that a corpus is made of.
#pragma once
#include <cstdint>
#include <string>

#include "base/file.h"
#include "data/layouts.h"

namespace linnet {

/// A shard mapped read-only; header (or index) and length are checked when it is opened.
class TokenShard {
  public:
    explicit TokenShard(const std::string& path, const CorpusLayout& layout = corpus_layouts()[0]);
    std::uint64_t size() const { return tokens_; }
    std::uint32_t operator[](std::uint64_t i) const;  // i < size()
    const std::string& path() const { return file_.path(); }
    std::uint64_t bytes() const { return file_.bytes().size(); }

  private:
    void read_llmc_header();
    MappedFile file_;
    const std::byte* ids_ = nullptr;
    std::uint64_t tokens_ = 0;
    int token_bytes_ = 2;
};

}  // namespace linnet
