#include "snapshots/git/object_id.hpp"

#include "base/assert.hpp"
#include "base/random.hpp"

#include <openssl/evp.h>

namespace berth::snapshots {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::optional<ObjectId> ObjectId::from_hex(std::string_view text) {
  ObjectId id;
  if (text.size() != id.bytes.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    id.bytes[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return id;
}

std::string ObjectId::hex() const {
  return berth::hex(bytes);
}

std::string_view name_of(ObjectType type) {
  switch (type) {
    case ObjectType::commit: return "commit";
    case ObjectType::tree: return "tree";
    case ObjectType::blob: return "blob";
  }
  return "blob";
}

void Sha1::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha1::Sha1() : context_(EVP_MD_CTX_new()) {
  // Looking the algorithm up costs more than hashing a small file.
  static const EVP_MD* const sha1 = EVP_MD_fetch(nullptr, "SHA1", nullptr);
  BERTH_ASSERT(context_ && EVP_DigestInit_ex2(context_.get(), sha1, nullptr) == 1);
}

void Sha1::add(std::string_view bytes) {
  BERTH_ASSERT(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

ObjectId Sha1::finish() {
  ObjectId id;
  unsigned length = 0;
  BERTH_ASSERT(EVP_DigestFinal_ex(context_.get(), id.bytes.data(), &length) == 1 &&
               length == id.bytes.size());
  return id;
}

std::string object_header(ObjectType type, std::uint64_t bytes) {
  std::string header = std::string{name_of(type)} + ' ' + std::to_string(bytes);
  header += '\0';
  return header;
}

ObjectId id_of(ObjectType type, std::string_view content) {
  Sha1 hash;
  hash.add(object_header(type, content.size()));
  hash.add(content);
  return hash.finish();
}

}  // namespace berth::snapshots
