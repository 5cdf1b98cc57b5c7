#pragma once

#include "keeper/protocol/fields.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// The binary form of described structs: fields in order, integers little endian, a string or list
// as its u32 length and then its content, an optional value after a byte that is 0 or 1. A decoder
// rejects input that is short, long or out of range, and never reserves more than the given bytes
// could hold.
namespace berth::keeper {

template <class T>
concept Scalar = std::integral<T> || std::is_enum_v<T>;

template <Scalar T>
constexpr auto as_unsigned(T value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<std::make_unsigned_t<std::underlying_type_t<T>>>(value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

class WireWriter {
 public:
  explicit WireWriter(std::string& out) : out_(out) {}

  template <Scalar T>
  void put(T value) {
    auto bits = as_unsigned(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out_ += static_cast<char>(bits & 0xff);
      bits = static_cast<decltype(bits)>(sizeof(T) > 1 ? bits >> 8 : 0);
    }
  }
  void put(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    out_ += text;
  }
  void put(const std::string& text) { put(std::string_view{text}); }
  template <class T>
  void put(const std::vector<T>& items) {
    put(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) put(item);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(static_cast<std::uint8_t>(value ? 1 : 0));
    if (value) put(*value);
  }
  template <Described T>
  void put(const T& value) {
    for_each_field(value, [&](std::string_view, const auto& member) { put(member); });
  }

 private:
  std::string& out_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view in) : in_(in) {}

  template <Scalar T>
  bool get(T& value) {
    if (in_.size() < sizeof(T)) return false;
    decltype(as_unsigned(value)) bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      const auto byte = static_cast<unsigned char>(in_[i]);
      bits = static_cast<decltype(bits)>(bits | (static_cast<std::uint64_t>(byte) << (8 * i)));
    }
    in_.remove_prefix(sizeof(T));
    if constexpr (std::is_enum_v<T>) {
      // Every enum on the wire ends with `count_`: we never write a value past it.
      if (bits >= as_unsigned(T::count_)) return false;
    }
    value = static_cast<T>(bits);
    return true;
  }
  bool get(std::string& text) {
    std::uint32_t size = 0;
    if (!get(size) || in_.size() < size) return false;
    text = in_.substr(0, size);
    in_.remove_prefix(size);
    return true;
  }
  template <class T>
  bool get(std::vector<T>& items) {
    std::uint32_t count = 0;
    if (!get(count)) return false;
    items.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      if (in_.empty()) return false;  // every item takes at least one byte
      if (!get(items.emplace_back())) return false;
    }
    return true;
  }
  template <class T>
  bool get(std::optional<T>& value) {
    std::uint8_t is_there = 0;
    if (!get(is_there) || is_there > 1) return false;
    value.reset();
    return is_there == 0 || get(value.emplace());
  }
  template <Described T>
  bool get(T& value) {
    bool good = true;
    for_each_field(value, [&](std::string_view, auto& member) { good = good && get(member); });
    return good;
  }

  bool at_end() const { return in_.empty(); }

 private:
  std::string_view in_;
};

}  // namespace berth::keeper
