#include "base/digest.hpp"

#include "base/assert.hpp"
#include "base/random.hpp"

#include <openssl/evp.h>

#include <array>

namespace berth {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned length = 0;
  const int ok =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
  BERTH_ASSERT(ok == 1 && length == digest.size());
  return hex(digest);
}

}  // namespace berth
