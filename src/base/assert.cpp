#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace berth {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "berth: bug: %s does not hold at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace berth
