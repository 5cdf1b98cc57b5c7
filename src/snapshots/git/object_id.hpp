#pragma once

#include "base/result.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace berth::snapshots {

// The name of a git object: the SHA-1 of its type, size and content.
struct ObjectId {
  std::array<unsigned char, 20> bytes = {};

  static std::optional<ObjectId> from_hex(std::string_view text);
  std::string hex() const;
  std::string_view raw() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  friend auto operator<=>(const ObjectId&, const ObjectId&) = default;
};

enum class ObjectType : unsigned char { commit = 1, tree = 2, blob = 3 };
std::string_view name_of(ObjectType type);

// The modes that git knows.
enum class GitMode : std::uint32_t {
  file = 0100644,
  program = 0100755,
  link = 0120000,
  commit = 0160000,  // a nested repository, as the id of its commit
  tree = 0040000,
};

// SHA-1 over bytes that come in pieces.
class Sha1 {
 public:
  Sha1();
  void add(std::string_view bytes);
  // May be called once.
  ObjectId finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// "blob 12\0", with which the hash of every object begins.
std::string object_header(ObjectType type, std::uint64_t bytes);
ObjectId id_of(ObjectType type, std::string_view content);

}  // namespace berth::snapshots

template <>
struct std::hash<berth::snapshots::ObjectId> {
  std::size_t operator()(const berth::snapshots::ObjectId& id) const noexcept {
    std::size_t value = 0;
    std::memcpy(&value, id.bytes.data(), sizeof value);
    return value;
  }
};
