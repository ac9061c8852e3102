#include "data/megatron_index.h"

#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace linnet {
namespace {

constexpr std::string_view magic("MMIDIDX\0\0", 9);
constexpr std::size_t header_bytes = 9 + 8 + 1 + 8 + 8;
constexpr std::uint8_t uint16_code = 8, int32_code = 4;

template <class T>
T at(std::span<const std::byte> bytes, std::uint64_t offset) {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

template <class T>
void put(AtomicFile& file, T value) {
    file.write(&value, sizeof value);
}

}  // namespace

MegatronIndex read_megatron_index(const std::string& path, std::uint64_t bin_bytes) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    if (bytes.size() < header_bytes || !file.text().starts_with(magic))
        fail_input(path, "header", "MMIDIDX, as Megatron-LM writes it", "something else");
    if (at<std::uint64_t>(bytes, 9) != 1)
        fail_input(path, "version", "1", std::to_string(at<std::uint64_t>(bytes, 9)));
    MegatronIndex index;
    const auto code = at<std::uint8_t>(bytes, 17);
    if (code != uint16_code && code != int32_code)
        fail_input(path, "type", "8 (uint16) or 4 (int32)", std::to_string(code));
    index.token_bytes = code == uint16_code ? 2 : 4;
    index.sequences = at<std::uint64_t>(bytes, 18);
    index.documents = at<std::uint64_t>(bytes, 26);
    const std::uint64_t left = bytes.size() - header_bytes;
    const bool fits = index.sequences <= left / 12 && index.documents <= left / 8 &&
                      index.sequences * 12 + index.documents * 8 == left;
    if (!fits)
        fail_input(path, "", "12 bytes per sequence and 8 per document",
                   std::to_string(left) + " bytes for " + std::to_string(index.sequences) + " and " +
                       std::to_string(index.documents));
    const auto width = static_cast<std::uint64_t>(index.token_bytes);
    for (std::uint64_t i = 0; i < index.sequences; i++) {
        const auto length = at<std::int32_t>(bytes, header_bytes + i * 4);
        const auto pointer = at<std::int64_t>(bytes, header_bytes + index.sequences * 4 + i * 8);
        if (length < 0 || pointer < 0 || static_cast<std::uint64_t>(pointer) != index.tokens * width)
            fail_input(path, "sequence " + std::to_string(i),
                       "tokens behind those of the sequence before (byte " +
                           std::to_string(index.tokens * width) + ")",
                       std::to_string(length) + " at byte " + std::to_string(pointer));
        index.tokens += static_cast<std::uint64_t>(length);
    }
    if (index.tokens * width != bin_bytes)
        fail_input(path, "", std::to_string(bin_bytes) + " bytes of tokens, as the .bin beside it has",
                   std::to_string(index.tokens * width));
    return index;
}

void write_megatron_index(const std::string& path, const std::string& starts, std::uint64_t tokens,
                          int token_bytes) {
    const MappedFile file(starts);
    const std::uint64_t count = file.bytes().size() / sizeof(std::int64_t);
    auto start = [&](std::uint64_t i) {
        return i == count ? static_cast<std::int64_t>(tokens)
                          : at<std::int64_t>(file.bytes(), i * sizeof(std::int64_t));
    };
    std::uint64_t sequences = 0;
    if (count > 0 && start(0) != 0)
        fail_input(starts, "document 0", "0, where it begins", std::to_string(start(0)));
    for (std::uint64_t i = 0; i < count; i++) {
        if (start(i + 1) < start(i))
            fail_input(starts, "document " + std::to_string(i),
                       "at most " + std::to_string(start(i + 1)) + ", where the next one begins",
                       std::to_string(start(i)));
        if (start(i + 1) - start(i) > std::numeric_limits<std::int32_t>::max())
            fail_input(path, "document " + std::to_string(i), "at most 2147483647 tokens",
                       std::to_string(start(i + 1) - start(i)));
        sequences += start(i + 1) > start(i);
    }
    AtomicFile out(path, Existing::replace_name);
    out.write(magic);
    put<std::uint64_t>(out, 1);
    put<std::uint8_t>(out, token_bytes == 2 ? uint16_code : int32_code);
    put<std::uint64_t>(out, sequences);
    put<std::uint64_t>(out, sequences + 1);
    for (std::uint64_t i = 0; i < count; i++)
        if (start(i + 1) > start(i)) put(out, static_cast<std::int32_t>(start(i + 1) - start(i)));
    for (std::uint64_t i = 0; i < count; i++)
        if (start(i + 1) > start(i)) put<std::int64_t>(out, start(i) * token_bytes);
    for (std::uint64_t i = 0; i <= sequences; i++) put(out, static_cast<std::int64_t>(i));
    out.commit();
}

}  // namespace linnet
