#pragma once

#include "base/json/json.hpp"

#include <string>
#include <string_view>

namespace berth::core {

inline bj::object json(std::string_view text) {
  return decode_text<bj::object>(text).value();
}

template <class I>
I id_of(char digit) {
  return *I::parse(std::string(8, digit) + "-0000-4000-8000-000000000000");
}

}  // namespace berth::core
