#include "base/keyed_hash.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>

namespace linnet {
namespace {

HashSecret drawn() {
    HashSecret secret{};
    if (::getentropy(&secret, sizeof secret) != 0) {  // no random numbers here: the time and where things lie
        const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
        secret.a = static_cast<std::uint64_t>(now) * 0x9E3779B97F4A7C15u;
        secret.b = secret.a ^ reinterpret_cast<std::uintptr_t>(&secret);
        secret.odd = secret.b * 0xD6E8FEB86659FD93u;
    }
    secret.odd |= 1;
    return secret;
}

}  // namespace

const HashSecret hash_secret = drawn();

}  // namespace linnet
