#include "core/fingerprint.hpp"

#include "base/digest.hpp"

#include <algorithm>
#include <cmath>

namespace berth::core {
namespace {

constexpr double exact_integer_max = 9007199254740992.0;  // 2^53

void write_canonical(const bj::value& value, std::string& out);

void write_members(const bj::object& object, std::string& out) {
  std::vector<const bj::key_value_pair*> members;
  members.reserve(object.size());
  for (const auto& member : object) members.push_back(&member);
  std::ranges::sort(members, {},
                    [](const auto* member) { return std::string_view{member->key()}; });
  out += '{';
  for (const auto* member : members) {
    if (out.back() != '{') out += ',';
    out += encode_text(std::string_view{member->key()});
    out += ':';
    write_canonical(member->value(), out);
  }
  out += '}';
}

void write_canonical(const bj::value& value, std::string& out) {
  if (const bj::object* object = value.if_object()) {
    write_members(*object, out);
  } else if (const bj::array* array = value.if_array()) {
    out += '[';
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (i > 0) out += ',';
      write_canonical((*array)[i], out);
    }
    out += ']';
  } else if (value.is_double() && std::trunc(value.get_double()) == value.get_double() &&
             std::abs(value.get_double()) < exact_integer_max) {
    out += std::to_string(static_cast<std::int64_t>(value.get_double()));
  } else {
    out += encode_text(value);
  }
}

}  // namespace

std::string canonical_json(const bj::value& value) {
  std::string out;
  write_canonical(value, out);
  return out;
}

std::string fingerprint(const ReuseKey& key) {
  return "v1:sha256:" + sha256_hex(canonical_json(encode(key)));
}

}  // namespace berth::core
