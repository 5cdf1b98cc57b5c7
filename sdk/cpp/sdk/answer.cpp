#include "sdk/answer.hpp"

#include <algorithm>
#include <array>

namespace berth::sdk {
namespace {

constexpr std::array<std::string_view, 5> shown_as_null{"exitCode", "signal", "providerLeaseId",
                                                        "expiresAt", "connectionSummary"};

}  // namespace

bj::value without_absent(bj::value value) {
  bj::object* object = value.if_object();
  if (object == nullptr) return value;
  for (auto member = object->begin(); member != object->end();) {
    const std::string_view key{member->key().data(), member->key().size()};
    if (member->value().is_null() && std::ranges::find(shown_as_null, key) == shown_as_null.end()) {
      member = object->erase(member);
    } else {
      ++member;
    }
  }
  return value;
}

}  // namespace berth::sdk
