#include "http/server/held_bytes.hpp"

namespace berth::http {

BytesHolder BytesHolder::of(const core::Caller& caller) {
  if (caller.is_instance_admin()) return {.rank = Rank::administrator};
  if (!caller.company_id) return {};
  return {.rank = Rank::company, .name = caller.company_id->str()};
}

bool HeldBytes::add(const BytesHolder& holder, std::size_t bytes) {
  if (bytes == 0) return true;
  const auto found = by_name_.find(holder.name);
  const std::size_t own = found == by_name_.end() ? 0 : found->second;
  bool has_room = all_ + bytes <= most_;
  switch (holder.rank) {
    case BytesHolder::Rank::stranger:
      has_room = has_room && own + bytes <= most_ / 8;
      [[fallthrough]];
    case BytesHolder::Rank::company:
      has_room = has_room && own + bytes <= most_ / 4 && all_ + bytes <= most_ - most_ / 8;
      break;
    case BytesHolder::Rank::administrator: break;
  }
  if (!has_room) return false;
  all_ += bytes;
  if (holder.rank != BytesHolder::Rank::administrator) by_name_[holder.name] = own + bytes;
  return true;
}

void HeldBytes::remove(const BytesHolder& holder, std::size_t bytes) {
  all_ -= bytes;
  if (holder.rank == BytesHolder::Rank::administrator || bytes == 0) return;
  const auto found = by_name_.find(holder.name);
  found->second -= bytes;
  if (found->second == 0) by_name_.erase(found);
}

}  // namespace berth::http
