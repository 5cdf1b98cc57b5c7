#include "core/output/hidden_values.hpp"

#include "core/output/redaction.hpp"

#include <algorithm>

namespace berth::core {

bool HiddenValues::add(const Secret& value) {
  if (value.reveal().size() < redactable_bytes_min) return false;
  const auto is_same = [&](const Secret& known) { return known.reveal() == value.reveal(); };
  if (std::ranges::any_of(values_, is_same)) return false;
  values_.push_back(value.clone());
  return true;
}

}  // namespace berth::core
