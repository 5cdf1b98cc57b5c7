#pragma once

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/secret.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace berth::vault {

// A value that only the master key opens. `key_id` says which one.
struct Sealed {
  std::string key_id;
  std::string text;
};

// Where the master keys are. The environment variables win over the file, which is then not read.
// A key in a variable is 64 hex digits, or 32 bytes in base64 or base64url.
struct KeySource {
  std::optional<std::string> key = {};  // BERTH_MASTER_KEY: the current key
  std::optional<std::string> previous_key =
      {};                  // BERTH_MASTER_KEY_PREVIOUS: opens only, during a rotation
  std::string file = {};   // BERTH_MASTER_KEY_FILE, or master.key in the home folder
  bool may_create = true;  // false when the store already holds sealed values
};

// Seals and opens secrets with XChaCha20-Poly1305. What is sealed is bound to its key and to a
// context ("secret:ID:2"), so that a row cannot be moved to another place. Safe to use from any
// thread once opened.
class Vault {
 public:
  // Reads the keys, or creates the key file exclusively with mode 0600. Refuses a file that others
  // can read. `random` makes keys and nonces and must outlive the vault.
  static Result<Vault> open(KeySource source, Random& random);

  Sealed seal(std::string_view value, std::string_view context);
  Result<Secret> unseal(const Sealed& sealed, std::string_view context);
  // Keyed, so that equal values can be told but none can be guessed. The current key makes it:
  // fingerprints compare only among values that were sealed under the same key id, and a rotation
  // must compute them anew.
  std::string fingerprint(std::string_view value) const;

  // Stays valid as long as the vault, also when a rotation makes another key current.
  const std::string& current_key_id() const;
  bool has_key(const std::string& key_id) const;

  // Rotation. After `begin_rotation` the key file holds a new current key and all former ones,
  // durably; after `finish_rotation` only the current one is left. A crash between them leaves a
  // file that opens everything; the next `begin_rotation` then goes on with the key that was
  // begun, so that attempts do not pile up keys. Two processes that rotate at once: one gets
  // `conflict`. With keys from the environment, `begin_rotation` reports whether a previous key is
  // there to rotate from, and `finish_rotation` logs which variable may be dropped.
  Result<> begin_rotation();
  Result<> finish_rotation();
  // Reads the file again: another process may have rotated it.
  Result<> reload();

 private:
  struct Keys;
  explicit Vault(std::shared_ptr<Keys> keys);
  std::shared_ptr<Keys> keys_;
};

}  // namespace berth::vault
