#pragma once

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace berth::vault {

inline constexpr std::size_t key_bytes = 32;

// Thirty-two bytes between guard pages, kept out of swap where the kernel allows it, and wiped on
// destruction.
class KeyBytes {
 public:
  KeyBytes();
  unsigned char* data() { return bytes_.get(); }
  const unsigned char* data() const { return bytes_.get(); }
  std::span<unsigned char> span() { return {bytes_.get(), key_bytes}; }

 private:
  struct Free {
    void operator()(unsigned char* bytes) const noexcept;
  };
  std::unique_ptr<unsigned char[], Free> bytes_;
};

// One master key and the subkeys derived from it. The master key itself seals nothing, so a
// ciphertext or fingerprint reveals nothing about another.
struct Key {
  std::string id;  // 16 hex digits of a keyed hash: identifies the key without revealing it
  KeyBytes master;
  KeyBytes seal;
  KeyBytes fingerprint;
};

// The keys of a vault. The first is current; the others only open old values.
using KeyRing = std::vector<std::shared_ptr<const Key>>;

std::shared_ptr<const Key> derive_key(KeyBytes master);
std::shared_ptr<const Key> make_key(Random& random);
// 64 hex digits, or 32 bytes in base64 or base64url, padded or not. `name` identifies the key in
// errors; the text itself is never repeated.
Result<std::shared_ptr<const Key>> parse_key(std::string_view text, std::string_view name);

// The key file: lines of `berth-key-v1 <key id> <base64>`. Errors name the line, never its content.
Result<KeyRing> parse_ring(std::string_view text, const std::string& path);
Secret ring_text(const KeyRing& ring);

}  // namespace berth::vault
