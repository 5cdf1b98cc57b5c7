#pragma once

#include "egress/address.hpp"

#include <list>
#include <map>
#include <memory>

namespace berth::egress {

// Gives each name that a worker looks up an address that stands for it, so that the address a
// worker connects to tells which name it means. The addresses lie in a range that no network on the
// internet uses and that is local in the worker's network namespace.
//
// Addresses are given out in turn through the whole range. The address of a forgotten name
// therefore stands for nothing for a long time before it stands for another name.
class SyntheticNames {
 public:
  static constexpr std::size_t names_max_default = 4096;
  static constexpr std::uint32_t addresses_max = (1U << 17U) - 257;

  // Fewer addresses than the range has come round sooner. At most half of them are given at a time.
  explicit SyntheticNames(std::size_t names_max = names_max_default,
                          std::uint32_t addresses = addresses_max);
  SyntheticNames(const SyntheticNames&) = delete;
  SyntheticNames& operator=(const SyntheticNames&) = delete;

  // 198.18.0.0/15, which RFC 2544 reserves for benchmarks. Its first 256 addresses are never given.
  static const Range& range();

  // The address of a name, the same one as long as the name is known. Where no more names fit, the
  // name that was used least recently is forgotten. Nothing when all of them are in use.
  std::optional<Address> address_of(const std::string& name);
  // The name that an address stands for; null when it stands for none. A name is in use as long as
  // the caller keeps the pointer: its address is not given to another name.
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
  Entries entries_;  // the most recently used first
  std::map<std::string, Entries::iterator, std::less<>> by_name_;
  std::map<std::uint32_t, Entries::iterator> by_offset_;
  std::uint32_t next_;
};

}  // namespace berth::egress
