#include "images/hash.hpp"

#include "base/assert.hpp"
#include "base/random.hpp"

#include <array>

namespace berth::images {

Hash::Hash() : context_(EVP_MD_CTX_new()) {
  BERTH_ASSERT(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Hash::add(std::string_view bytes) {
  BERTH_ASSERT(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Hash::digest() {
  std::array<unsigned char, 32> bytes{};
  unsigned size = 0;
  BERTH_ASSERT(EVP_DigestFinal_ex(context_.get(), bytes.data(), &size) == 1 &&
               size == bytes.size());
  return "sha256:" + hex(bytes);
}

}  // namespace berth::images
