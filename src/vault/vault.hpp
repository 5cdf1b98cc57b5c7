#pragma once

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace berth::vault {

// A value that only a master key can open. `key_id` names that key.
struct Sealed {
  std::string key_id;
  std::string text;
};

// Where the master keys come from. Environment variables win over the file, which is then not read.
// A key in a variable is 64 hex digits, or 32 bytes in base64 or base64url.
struct KeySource {
  std::optional<std::string> key = {};  // BERTH_MASTER_KEY: the current key
  std::optional<std::string> previous_key =
      {};                  // BERTH_MASTER_KEY_PREVIOUS: only opens values, during a rotation
  std::string file = {};   // BERTH_MASTER_KEY_FILE, or master.key in the home folder
  bool may_create = true;  // false when the store already holds sealed values
};

// Seals and opens secrets with XChaCha20-Poly1305. A sealed value is bound to its key and to a
// context ("secret:ID:2"), so a row cannot be moved elsewhere. Thread-safe once opened.
class Vault {
 public:
  // Reads the keys, or creates the key file exclusively with mode 0600. Rejects a file that others
  // can read. `random` generates keys and nonces and must outlive the vault.
  static Result<Vault> open(KeySource source, Random& random);

  Sealed seal(std::string_view value, std::string_view context);
  Result<Secret> unseal(const Sealed& sealed, std::string_view context);
  // Keyed, so that equal values can be recognized but not guessed. It depends on the current key:
  // compare fingerprints only among values sealed under the same key id. A rotation must recompute
  // them.
  std::string fingerprint(std::string_view value) const;

  // The reference remains valid for the vault's lifetime, even after a rotation changes the current
  // key.
  const std::string& current_key_id() const;
  bool has_key(const std::string& key_id) const;

  // Rotation. After `begin_rotation` the key file durably holds a new current key and all former
  // ones. After `finish_rotation` only the current key remains. A crash in between leaves a file
  // that opens everything. The next `begin_rotation` continues with the key already begun, so
  // attempts do not pile up keys. If two processes rotate at once, one gets `conflict`. With keys
  // from the environment, `begin_rotation` reports whether there is a previous key to rotate from,
  // and `finish_rotation` logs which variable can be removed.
  Result<> begin_rotation();
  Result<> finish_rotation();
  // Rereads the file, because another process may have rotated the key.
  Result<> reload();

 private:
  struct Keys;
  explicit Vault(std::shared_ptr<Keys> keys);
  std::shared_ptr<Keys> keys_;
};

}  // namespace berth::vault
