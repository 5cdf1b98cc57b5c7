#include "base/fault_point.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string>

namespace berth {
namespace {

struct Fault {
  std::string name;
  std::atomic<int> passes_left = 1;

  Fault() {
    const char* given = std::getenv("BERTH_FAULT_POINT");  // read before any thread could change it
    const std::string_view text = given != nullptr ? given : "";
    const std::size_t colon = text.find(':');
    name = text.substr(0, colon);
    if (colon == std::string_view::npos) return;
    int count = 1;
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), count);
    passes_left = count;
  }
};

}  // namespace

void fault_point(std::string_view name) {
  static Fault fault;
  if (fault.name.empty() || fault.name != name) return;
  if (fault.passes_left.fetch_sub(1) == 1) ::kill(::getpid(), SIGKILL);
}

}  // namespace berth
