#pragma once

#include "base/owned.hpp"

#include <openssl/evp.h>

#include <string>
#include <string_view>

namespace berth::images {

// Incremental SHA-256.
class Hash {
 public:
  Hash();
  void add(std::string_view bytes);
  // "sha256:..." of everything added; nothing may be added afterwards.
  std::string digest();

 private:
  struct ContextKind {
    using Raw = EVP_MD_CTX*;
    static Raw none() { return nullptr; }
    static void dispose(Raw context) noexcept { EVP_MD_CTX_free(context); }
  };
  Owned<ContextKind> context_;
};

}  // namespace berth::images
