#include "base/digest.hpp"

#include "base/assert.hpp"
#include "base/random.hpp"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

namespace berth {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  BERTH_ASSERT(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::string_view bytes) {
  BERTH_ASSERT(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> bytes{};
  unsigned size = 0;
  BERTH_ASSERT(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) == 1 &&
               size == bytes.size());
  return berth::hex(bytes);
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.hex();
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
