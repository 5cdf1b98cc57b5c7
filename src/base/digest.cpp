#include "base/digest.hpp"

#include "base/assert.hpp"
#include "base/random.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

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

std::array<unsigned char, 32> hmac_sha256(std::string_view key, std::string_view bytes) {
  std::array<unsigned char, 32> code{};
  unsigned length = 0;
  const unsigned char* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   bytes.size(), code.data(), &length);
  BERTH_ASSERT(made != nullptr && length == code.size());
  return code;
}

bool equal_in_constant_time(std::string_view left, std::string_view right) {
  return left.size() == right.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace berth
