#include "base/json/json.hpp"

#include "base/assert.hpp"

#include <cstddef>
#include <cstdint>

// Whatever the mapper accepts, it must write so that it reads the same value again.
namespace berth {
namespace {

BOOST_DEFINE_ENUM_CLASS(Shade, light, dark, operator_)

struct FuzzTag {
  static constexpr auto noun = "fuzz";
};

struct Leaf {
  std::string text;
  std::optional<Shade> shade;
};
BOOST_DESCRIBE_STRUCT(Leaf, (), (text, shade))

struct Everything {
  bool flag;
  std::int64_t wide;
  std::uint8_t narrow;
  double ratio;
  std::string some_text;
  Time at;
  std::optional<Id<FuzzTag>> id;
  Shade shade;
  Leaf leaf;
  std::vector<Leaf> leaves;
  std::map<std::string, std::int32_t> counts;
  std::optional<std::vector<std::optional<bool>>> bits;
  bj::value any;
  std::optional<bj::object> object;
  std::optional<bj::array> array;
};
BOOST_DESCRIBE_STRUCT(Everything, (),
                      (flag, wide, narrow, ratio, some_text, at, id, shade, leaf, leaves, counts,
                       bits, any, object, array))

// PATCH bodies are only read, so for them it is enough not to crash.
struct Change {
  Patch<std::string> name;
  Patch<Leaf> leaf;
  std::optional<Secret> secret;
};
BOOST_DESCRIBE_STRUCT(Change, (), (name, leaf, secret))

void check(std::string_view text) {
  const auto first = decode_text<Everything>(text);
  if (!first) {
    BERTH_ASSERT(!first.error().message.empty());
    return;
  }
  const std::string written = encode_text(*first);
  const auto second = decode_text<Everything>(written);
  BERTH_ASSERT(second.has_value());
  BERTH_ASSERT(encode_text(*second) == written);
}

}  // namespace
}  // namespace berth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  berth::check(text);
  static_cast<void>(berth::decode_text<berth::Change>(text, berth::UnknownKeys::ignore));
  return 0;
}
