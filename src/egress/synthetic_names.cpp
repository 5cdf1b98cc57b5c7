#include "egress/synthetic_names.hpp"

#include <algorithm>

namespace berth::egress {
namespace {

// The first addresses are reserved for the namespace itself; the last one looks like a broadcast
// address.
constexpr std::uint32_t first_offset = 256;

Address address_at(std::uint32_t offset) {
  Address address = SyntheticNames::range().first;
  address.bytes[1] = static_cast<std::uint8_t>(address.bytes[1] + (offset >> 16U));
  address.bytes[2] = static_cast<std::uint8_t>(offset >> 8U);
  address.bytes[3] = static_cast<std::uint8_t>(offset);
  return address;
}

std::uint32_t offset_of(const Address& address) {
  const auto byte = [&](std::size_t at) {
    return static_cast<std::uint32_t>(address.bytes.at(at));
  };
  return (byte(1) - SyntheticNames::range().first.bytes[1]) << 16U | byte(2) << 8U | byte(3);
}

}  // namespace

SyntheticNames::SyntheticNames(std::size_t names_max, std::uint32_t addresses)
    : last_offset_(first_offset + std::min(addresses, addresses_max) - 1),
      names_max_(std::min<std::size_t>(names_max, addresses / 2)),
      next_(first_offset) {}

const Range& SyntheticNames::range() {
  static const Range synthetic{.first = Address{.bytes = {198, 18}}, .bits = 15};
  return synthetic;
}

std::optional<Address> SyntheticNames::address_of(const std::string& name) {
  if (const auto known = by_name_.find(name); known != by_name_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
    return address_at(known->second->offset);
  }
  if (entries_.size() >= names_max_ && !forget_one()) return std::nullopt;
  entries_.push_front({std::make_shared<const std::string>(name), take_offset()});
  by_name_.emplace(name, entries_.begin());
  by_offset_.emplace(entries_.front().offset, entries_.begin());
  return address_at(entries_.front().offset);
}

std::shared_ptr<const std::string> SyntheticNames::name_of(const Address& address) {
  if (!range().contains(address)) return nullptr;
  const auto known = by_offset_.find(offset_of(address));
  if (known == by_offset_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, known->second);
  return known->second->name;
}

bool SyntheticNames::forget_one() {
  const auto unused = [](const Entry& entry) { return entry.name.use_count() == 1; };
  const auto oldest = std::find_if(entries_.rbegin(), entries_.rend(), unused);
  if (oldest == entries_.rend()) return false;
  by_name_.erase(*oldest->name);
  by_offset_.erase(oldest->offset);
  entries_.erase(std::next(oldest).base());
  return true;
}

// At most half of the range is in use at any time, so a free address is always found.
std::uint32_t SyntheticNames::take_offset() {
  while (true) {
    const std::uint32_t offset = next_;
    next_ = next_ == last_offset_ ? first_offset : next_ + 1;
    if (!by_offset_.contains(offset)) return offset;
  }
}

}  // namespace berth::egress
