#include "images/oci.hpp"

#include "base/assert.hpp"

#include <cstddef>
#include <cstdint>

// Image documents from an untrusted source: the first byte selects the kind. Whatever is accepted
// satisfies the rules that its users rely on.
namespace berth::images {
namespace {

void check_config(std::string_view text) {
  const auto config = parse_config(text, "amd64");
  if (!config) return;
  BERTH_ASSERT(config->architecture == "amd64");
  for (const auto& [name, value] : config->config.env) {
    BERTH_ASSERT(!name.empty() && !name.contains('='));
    BERTH_ASSERT(!name.contains('\0') && !value.contains('\0'));
  }
  const auto again = decode_text<ImageConfig>(encode_text(config->config));
  BERTH_ASSERT(again.has_value() && *again == config->config);
}

void check(std::uint8_t which, std::string_view text) {
  const Wanted wanted{.architecture = "amd64"};
  switch (which % 4) {
    case 0:
      if (const auto chosen = choose_manifest(text, wanted))
        BERTH_ASSERT(is_digest(chosen->digest));
      break;
    case 1:
      if (const auto manifest = parse_manifest(text)) {
        for (const Descriptor& layer : manifest->layers) BERTH_ASSERT(is_digest(layer.digest));
      }
      break;
    case 2: check_config(text); break;
    default: static_cast<void>(choose_docker_manifest(text, wanted)); break;
  }
}

}  // namespace
}  // namespace berth::images

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  berth::images::check(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
