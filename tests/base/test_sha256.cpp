#include <doctest/doctest.h>

#include "base/sha256.h"

using namespace linnet;

TEST_CASE("SHA-256 gives the digests of FIPS 180's examples") {
    CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(sha256(std::string(1000000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 of pieces is that of the whole, for every length around a block and every cut") {
    std::string text;
    for (int i = 0; i < 200; i++) text += static_cast<char>(i * 37);
    for (std::size_t length = 0; length <= 200; length += length < 130 ? 1 : 17) {
        std::string whole = sha256(text.substr(0, length));
        for (std::size_t cut = 0; cut <= length; cut += 3) {
            Sha256 hash;
            hash.update(std::string_view(text).substr(0, cut));
            hash.update(std::string_view());  // as of an empty file: no pointer
            hash.update(std::string_view(text).substr(cut, length - cut));
            if (hash.hex() != whole) FAIL("length " << length << " cut at " << cut);
        }
    }
}

TEST_CASE("the CPU's SHA instructions and the portable loop agree on every length and cut") {
    std::string text;
    for (int i = 0; i < 1000; i++) text += static_cast<char>(i * 7 + i / 13);
    for (std::size_t n = 0; n <= text.size(); n += 1 + n / 60) {
        linnet::Sha256 fast, slow(true);
        fast.update(text.data(), n / 3);
        fast.update(text.data() + n / 3, n - n / 3);
        slow.update(text.data(), n);
        CHECK(fast.hex() == slow.hex());
    }
}
