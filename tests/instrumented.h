// Whether this build watches memory, or counts branches.
#pragma once

namespace linnet::test {

/// What a process takes says nothing then, and tests that limit it are left out.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(LINNET_COUNTED)
inline constexpr bool instrumented = true;
#else
inline constexpr bool instrumented = false;
#endif

}  // namespace linnet::test
