#include "keeper/protocol/wire.hpp"
#include "keeper/sandbox/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

// A decoded plan encodes to the same bytes, and a plan that passes check() satisfies its
// guarantees.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace berth::keeper;
  const std::string_view in{reinterpret_cast<const char*>(bytes), size};
  sandbox::Plan plan;
  WireReader reader{in};
  if (!reader.get(plan) || !reader.at_end()) return 0;
  std::string again;
  WireWriter{again}.put(plan);
  if (again != in) std::abort();
  if (!check(plan)) return 0;
  for (const sandbox::Bind& bind : plan.binds) {
    if (bind.target[0] != '/' || bind.target.contains("/../")) std::abort();
  }
  if (plan.base == sandbox::Base::layers && plan.layers.empty()) std::abort();
  return 0;
}
