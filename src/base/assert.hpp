#pragma once

namespace berth {

// Ends the process after writing what was wrong and where. Restart is designed; guessing is not.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace berth

// On in every build: a bug stops the program before it writes something wrong.
#define BERTH_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::berth::assertion_failed(#condition, __FILE__, __LINE__))
