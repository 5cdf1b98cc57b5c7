#pragma once

namespace berth {

// Ends the process after reporting what was wrong and where. A restart is safe; continuing is not.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace berth

// On in every build: a bug stops the program before it writes wrong data.
#define BERTH_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::berth::assertion_failed(#condition, __FILE__, __LINE__))
