#pragma once

#include "base/owned.hpp"

#include <openssl/evp.h>

#include <array>
#include <string>
#include <string_view>

namespace berth {

// SHA-256 of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // 64 lower-case hexadecimal digits for everything added; nothing may be added afterwards.
  std::string hex();
  // The same as "sha256:...".
  std::string digest() { return "sha256:" + hex(); }

 private:
  struct ContextKind {
    using Raw = EVP_MD_CTX*;
    static Raw none() { return nullptr; }
    static void dispose(Raw context) noexcept { EVP_MD_CTX_free(context); }
  };
  Owned<ContextKind> context_;
};

// The SHA-256 of the bytes, as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
// HMAC with SHA-256 (RFC 2104): only a holder of the key can compute it.
std::array<unsigned char, 32> hmac_sha256(std::string_view key, std::string_view bytes);
// Takes the same time wherever two texts of one length differ, so that timing reveals nothing to a
// forger.
bool equal_in_constant_time(std::string_view left, std::string_view right);

}  // namespace berth
