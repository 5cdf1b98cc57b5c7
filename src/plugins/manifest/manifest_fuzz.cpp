#include "plugins/manifest/manifest.hpp"

#include "base/assert.hpp"
#include "base/json/json.hpp"

#include <cstddef>
#include <cstdint>

// Any JSON is either a manifest or is rejected with the path of the error. An accepted manifest is
// accepted again in the form that a worker gets.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace berth;
  const auto document = parse_json({reinterpret_cast<const char*>(bytes), size});
  if (!document) return 0;
  const Result<plugins::Manifest> manifest = plugins::parse_manifest(*document);
  if (!manifest) {
    BERTH_ASSERT(manifest.error().code == Errc::plugin_manifest_invalid);
    BERTH_ASSERT(!manifest.error().issues.empty());
    return 0;
  }
  BERTH_ASSERT(plugins::is_semantic_version(manifest->version));
  BERTH_ASSERT(plugins::compare_versions(manifest->version, manifest->version) == 0);
  BERTH_ASSERT(plugins::parse_manifest(manifest->document).has_value());
  return 0;
}
