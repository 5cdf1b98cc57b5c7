#include "vault/vault.hpp"

#include "base/assert.hpp"
#include "base/log.hpp"
#include "vault/key.hpp"
#include "vault/key_file.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <set>

namespace berth::vault {
namespace {

constexpr std::string_view seal_tag = "berth-seal-v1";
constexpr std::size_t nonce_bytes = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
constexpr std::size_t mac_bytes = crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr std::string_view current_name = "BERTH_MASTER_KEY";
constexpr std::string_view previous_name = "BERTH_MASTER_KEY_PREVIOUS";

using KeyPtr = std::shared_ptr<const Key>;

void append_part(std::string& out, std::string_view part) {
  const auto length = static_cast<std::uint64_t>(part.size());
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(length >> shift);
  out += part;
}

// Each part is prefixed with its length, so that no two (key id, context) pairs give the same
// bytes.
std::string associated_data(std::string_view key_id, std::string_view context) {
  std::string out;
  append_part(out, seal_tag);
  append_part(out, key_id);
  append_part(out, context);
  return out;
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string to_base64(std::span<const unsigned char> bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), bytes.data(), bytes.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // the terminating zero that libsodium writes
  return text;
}

std::optional<std::vector<unsigned char>> from_base64(std::string_view text) {
  std::vector<unsigned char> bytes(text.size() / 4 * 3 + 3);
  std::size_t length = 0;
  if (sodium_base642bin(bytes.data(), bytes.size(), text.data(), text.size(), nullptr, &length,
                        nullptr, sodium_base64_VARIANT_ORIGINAL) != 0) {
    return std::nullopt;
  }
  bytes.resize(length);
  return bytes;
}

void wipe(std::optional<std::string>& text) {
  if (text) sodium_memzero(text->data(), text->size());
  text.reset();
}

Result<KeyRing> keys_of_environment(const std::string& key, const KeySource& source) {
  BERTH_TRY(KeyPtr current, parse_key(key, current_name));
  KeyRing ring{std::move(current)};
  if (!source.previous_key) return ring;
  BERTH_TRY(KeyPtr previous, parse_key(*source.previous_key, previous_name));
  if (previous->id != ring.front()->id) ring.push_back(std::move(previous));
  return ring;
}

Result<KeyRing> load(const KeySource& source, Random& random) {
  if (source.key) return keys_of_environment(*source.key, source);
  if (source.previous_key) {
    return fail(
        Errc::master_key_invalid,
        std::string{previous_name} + ": is set, but " + std::string{current_name} + " is not",
        "set both, or neither to use the key file");
  }
  Result<KeyRing> found = read_key_file(source.file);
  if (found || found.error().code != Errc::master_key_missing || !source.may_create) return found;
  return create_key_file(source.file, random);
}

std::unexpected<Error> does_not_open(const Sealed& sealed, std::string_view context) {
  return fail(Errc::unseal_failed,
              std::string{context} + ": the sealed value does not open with key " + sealed.key_id +
                  ": it was altered or belongs elsewhere",
              "restore the database from a backup, or set the secret's value again");
}

}  // namespace

// The ring is replaced as a whole and never modified, so a reader needs the lock only to copy it.
struct Vault::Keys {
  Keys(bool in_environment, std::string path, Random& source_of_random)
      : from_environment(in_environment), file(std::move(path)), random(source_of_random) {}

  std::shared_ptr<const KeyRing> ring() const {
    const std::lock_guard lock{mutex};
    return current;
  }

  void use(KeyRing keys) {
    auto next = std::make_shared<const KeyRing>(std::move(keys));
    const std::lock_guard lock{mutex};
    current_id = &*ids.insert(next->front()->id).first;
    current = std::move(next);
  }

  const bool from_environment;
  const std::string file;
  Random& random;
  std::mutex rotation;  // one rotation at a time here; the file lock excludes other processes

  mutable std::mutex mutex;
  std::shared_ptr<const KeyRing> current;
  std::set<std::string> ids;  // every id that was ever current: callers hold references
  const std::string* current_id = nullptr;
};

Vault::Vault(std::shared_ptr<Keys> keys) : keys_(std::move(keys)) {}

Result<Vault> Vault::open(KeySource source, Random& random) {
  BERTH_ASSERT(sodium_init() >= 0);
  Result<KeyRing> ring = load(source, random);
  const bool from_environment = source.key.has_value();
  wipe(source.key);
  wipe(source.previous_key);
  if (!ring) return std::unexpected(std::move(ring).error());
  auto keys = std::make_shared<Keys>(from_environment, std::move(source.file), random);
  keys->use(*std::move(ring));
  return Vault{std::move(keys)};
}

Sealed Vault::seal(std::string_view value, std::string_view context) {
  const KeyPtr key = keys_->ring()->front();
  const std::string bound = associated_data(key->id, context);
  std::vector<unsigned char> out(nonce_bytes + value.size() + mac_bytes);
  keys_->random.fill(std::span{out}.first(nonce_bytes));
  crypto_aead_xchacha20poly1305_ietf_encrypt(out.data() + nonce_bytes, nullptr, bytes_of(value),
                                             value.size(), bytes_of(bound), bound.size(), nullptr,
                                             out.data(), key->seal.data());
  return {.key_id = key->id, .text = to_base64(out)};
}

Result<Secret> Vault::unseal(const Sealed& sealed, std::string_view context) {
  const auto ring = keys_->ring();
  const auto key = std::ranges::find(*ring, sealed.key_id, &Key::id);
  if (key == ring->end()) {
    return fail(Errc::unseal_failed,
                std::string{context} + ": is sealed with key " + sealed.key_id.substr(0, 64) +
                    ", which this vault does not have",
                "put the key with that id back: add its line to the key file, or set "
                "BERTH_MASTER_KEY_PREVIOUS to it");
  }
  const auto bytes = from_base64(sealed.text);
  if (!bytes || bytes->size() < nonce_bytes + mac_bytes) return does_not_open(sealed, context);
  const std::string bound = associated_data(sealed.key_id, context);
  std::vector<unsigned char> plain(bytes->size() - nonce_bytes - mac_bytes);
  const int opened = crypto_aead_xchacha20poly1305_ietf_decrypt(
      plain.data(), nullptr, nullptr, bytes->data() + nonce_bytes, bytes->size() - nonce_bytes,
      bytes_of(bound), bound.size(), bytes->data(), (*key)->seal.data());
  if (opened != 0) return does_not_open(sealed, context);
  Secret value{std::string_view{reinterpret_cast<const char*>(plain.data()), plain.size()}};
  if (!plain.empty()) sodium_memzero(plain.data(), plain.size());
  return value;
}

std::string Vault::fingerprint(std::string_view value) const {
  const KeyPtr key = keys_->ring()->front();
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  crypto_generichash(hash.data(), hash.size(), bytes_of(value), value.size(),
                     key->fingerprint.data(), key_bytes);
  return hex(hash);
}

const std::string& Vault::current_key_id() const {
  const std::lock_guard lock{keys_->mutex};
  return *keys_->current_id;
}

bool Vault::has_key(const std::string& key_id) const {
  const auto ring = keys_->ring();
  return std::ranges::find(*ring, key_id, &Key::id) != ring->end();
}

Result<> Vault::begin_rotation() {
  const std::lock_guard one_at_a_time{keys_->rotation};
  if (keys_->from_environment) {
    if (keys_->ring()->size() > 1) return {};
    return fail(Errc::master_key_missing,
                std::string{previous_name} + ": names no key that differs from " +
                    std::string{current_name} + ", so there is nothing to rotate from",
                "start the server with the new key in BERTH_MASTER_KEY and the old one in "
                "BERTH_MASTER_KEY_PREVIOUS, then run 'berth secret rekey'");
  }
  BERTH_TRY(const Fd lock, lock_key_file(keys_->file));
  // The file is authoritative, not our memory: another process may have added a key since.
  BERTH_TRY(KeyRing ring, read_key_file(keys_->file));
  if (ring.size() == 1) {
    ring.insert(ring.begin(), make_key(keys_->random));
    BERTH_DO(replace_key_file(keys_->file, ring));
  }
  keys_->use(std::move(ring));
  return {};
}

Result<> Vault::finish_rotation() {
  const std::lock_guard one_at_a_time{keys_->rotation};
  if (keys_->from_environment) {
    log::info("vault.previous_key_unneeded", {{"variable", previous_name}});
    return {};
  }
  BERTH_TRY(const Fd lock, lock_key_file(keys_->file));
  BERTH_TRY(KeyRing ring, read_key_file(keys_->file));
  if (ring.front()->id != current_key_id()) {
    return fail(Errc::conflict,
                "master key file " + keys_->file + ": another process made key " +
                    ring.front()->id + " current since this rotation began",
                "run 'berth secret rekey' again");
  }
  ring.resize(1);
  BERTH_DO(replace_key_file(keys_->file, ring));
  keys_->use(std::move(ring));
  return {};
}

Result<> Vault::reload() {
  if (keys_->from_environment) return {};
  const std::lock_guard one_at_a_time{keys_->rotation};
  BERTH_TRY(KeyRing ring, read_key_file(keys_->file));
  keys_->use(std::move(ring));
  return {};
}

}  // namespace berth::vault
