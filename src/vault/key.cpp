#include "vault/key.hpp"

#include "base/assert.hpp"
#include "base/strings.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>

namespace berth::vault {
namespace {

constexpr std::string_view line_tag = "berth-key-v1";
constexpr std::string_view id_context = "berth key id";
constexpr std::size_t id_bytes = 8;
constexpr std::size_t keys_max = 16;

static_assert(key_bytes == crypto_kdf_KEYBYTES);
static_assert(key_bytes == crypto_aead_xchacha20poly1305_ietf_KEYBYTES);
static_assert(key_bytes >= crypto_generichash_KEYBYTES_MIN);
static_assert(key_bytes <= crypto_generichash_KEYBYTES_MAX);

// The subkey numbers are part of the format of sealed values and never change.
enum class Subkey : std::uint64_t { seal = 1, fingerprint = 2 };

void derive(KeyBytes& out, Subkey which, const KeyBytes& master) {
  static_assert(crypto_kdf_CONTEXTBYTES == 8);
  crypto_kdf_derive_from_key(out.data(), key_bytes, static_cast<std::uint64_t>(which), "berthkey",
                             master.data());
}

std::string id_of(const KeyBytes& master) {
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  crypto_generichash(hash.data(), hash.size(),
                     reinterpret_cast<const unsigned char*>(id_context.data()), id_context.size(),
                     master.data(), key_bytes);
  return hex(std::span{hash}.first(id_bytes));
}

bool decode_base64(std::string_view text, int variant, KeyBytes& out) {
  std::size_t length = 0;
  return sodium_base642bin(out.data(), key_bytes, text.data(), text.size(), nullptr, &length,
                           nullptr, variant) == 0 &&
         length == key_bytes;
}

bool decode_hex(std::string_view text, KeyBytes& out) {
  std::size_t length = 0;
  return text.size() == 2 * key_bytes &&
         sodium_hex2bin(out.data(), key_bytes, text.data(), text.size(), nullptr, &length,
                        nullptr) == 0 &&
         length == key_bytes;
}

std::string_view take_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

std::unexpected<Error> bad_line(const std::string& path, std::size_t number,
                                const std::string& what) {
  return fail(Errc::master_key_invalid,
              "master key file " + path + ", line " + std::to_string(number) + ": " + what,
              "restore the file from its backup; a line is 'berth-key-v1 KEY_ID BASE64'");
}

}  // namespace

KeyBytes::KeyBytes() : bytes_(static_cast<unsigned char*>(sodium_malloc(key_bytes))) {
  if (bytes_ == nullptr) throw std::bad_alloc{};
}

void KeyBytes::Free::operator()(unsigned char* bytes) const noexcept {
  sodium_free(bytes);
}

std::shared_ptr<const Key> derive_key(KeyBytes master) {
  auto key = std::make_shared<Key>();
  key->id = id_of(master);
  derive(key->seal, Subkey::seal, master);
  derive(key->fingerprint, Subkey::fingerprint, master);
  key->master = std::move(master);
  return key;
}

std::shared_ptr<const Key> make_key(Random& random) {
  KeyBytes master;
  random.fill(master.span());
  return derive_key(std::move(master));
}

Result<std::shared_ptr<const Key>> parse_key(std::string_view text, std::string_view name) {
  const std::string_view word = trimmed(text);
  KeyBytes master;
  const bool known = decode_hex(word, master) ||
                     decode_base64(word, sodium_base64_VARIANT_ORIGINAL, master) ||
                     decode_base64(word, sodium_base64_VARIANT_ORIGINAL_NO_PADDING, master) ||
                     decode_base64(word, sodium_base64_VARIANT_URLSAFE, master) ||
                     decode_base64(word, sodium_base64_VARIANT_URLSAFE_NO_PADDING, master);
  if (!known) {
    return fail(Errc::master_key_invalid,
                std::string{name} + ": is not a 32-byte key (it has " +
                    std::to_string(word.size()) + " characters)",
                "give 64 hex digits or 32 bytes in base64; 'openssl rand -hex 32' makes a new key");
  }
  return derive_key(std::move(master));
}

Result<KeyRing> parse_ring(std::string_view text, const std::string& path) {
  KeyRing ring;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    if (take_word(line) != line_tag) {
      return bad_line(path, number, "does not start with '" + std::string{line_tag} + "'");
    }
    const std::string_view id = take_word(line);
    KeyBytes master;
    if (!decode_base64(line, sodium_base64_VARIANT_ORIGINAL, master)) {
      return bad_line(path, number, "its key is not 32 bytes in base64");
    }
    std::shared_ptr<const Key> key = derive_key(std::move(master));
    // The id is a checksum of the key, so a damaged key is detected here and not at the first
    // secret.
    if (key->id != id) return bad_line(path, number, "its key does not match its key id");
    const auto same = [&](const auto& other) { return other->id == key->id; };
    if (std::ranges::any_of(ring, same)) return bad_line(path, number, "repeats a key");
    if (ring.size() == keys_max) {
      return bad_line(path, number, "more than " + std::to_string(keys_max) + " keys");
    }
    ring.push_back(std::move(key));
  }
  if (ring.empty()) return bad_line(path, 1, "the file holds no key");
  return ring;
}

Secret ring_text(const KeyRing& ring) {
  std::string text;
  std::array<char, sodium_base64_ENCODED_LEN(key_bytes, sodium_base64_VARIANT_ORIGINAL)> word{};
  text.reserve(ring.size() * 96);  // never reallocated: no copy of a key is left on the heap
  for (const auto& key : ring) {
    sodium_bin2base64(word.data(), word.size(), key->master.data(), key_bytes,
                      sodium_base64_VARIANT_ORIGINAL);
    text.append(line_tag).append(" ").append(key->id).append(" ").append(word.data()).append("\n");
  }
  BERTH_ASSERT(text.size() <= ring.size() * 96);
  Secret out{text};
  sodium_memzero(word.data(), word.size());
  sodium_memzero(text.data(), text.size());
  return out;
}

}  // namespace berth::vault
