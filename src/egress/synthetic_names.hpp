#pragma once

#include "egress/address.hpp"

#include <list>
#include <map>
#include <memory>

namespace berth::egress {

// Gives each name that a worker looks up its own address, so that the address a worker connects to
// identifies the name. The addresses are in a range that no network on the internet uses and that
// is local in the worker's network namespace.
//
// Addresses are assigned in turn through the whole range. So a forgotten name's address remains
// unused for a long time before another name gets it.
class SyntheticNames {
 public:
  static constexpr std::size_t names_max_default = 4096;
  static constexpr std::uint32_t addresses_max = (1U << 17U) - 257;

  // With fewer addresses they are reused sooner. At most half of them are in use at a time.
  explicit SyntheticNames(std::size_t names_max = names_max_default,
                          std::uint32_t addresses = addresses_max);
  SyntheticNames(const SyntheticNames&) = delete;
  SyntheticNames& operator=(const SyntheticNames&) = delete;

  // 198.18.0.0/15, which RFC 2544 reserves for benchmarks. Its first 256 addresses are never used.
  static const Range& range();

  // The address of a name, which remains the same while the name is known. If no more names fit,
  // the least recently used one is forgotten. Empty if all of them are in use.
  std::optional<Address> address_of(const std::string& name);
  // The name that an address stands for; null if there is none. A name is in use while the caller
  // keeps the pointer: its address is not given to another name.
  std::shared_ptr<const std::string> name_of(const Address& address);
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::shared_ptr<const std::string> name;
    std::uint32_t offset = 0;  // of the address in the range
  };
  using Entries = std::list<Entry>;

  bool forget_one();
  std::uint32_t take_offset();

  std::uint32_t last_offset_;
  std::size_t names_max_;
  Entries entries_;  // most recently used first
  std::map<std::string, Entries::iterator, std::less<>> by_name_;
  std::map<std::uint32_t, Entries::iterator> by_offset_;
  std::uint32_t next_;
};

}  // namespace berth::egress
