#pragma once

#include "base/owned.hpp"
#include "vault/key.hpp"

#include <string>

namespace berth::vault {

// Reads the keys from a file that we own and no other user can read. Mode and owner are checked on
// the open descriptor, so the file cannot be swapped in between. A symbolic link is followed, and
// its target must meet the same rules.
Result<KeyRing> read_key_file(const std::string& path);

// When several processes call this at once, one creates the file; all of them then read the same
// keys.
Result<KeyRing> create_key_file(const std::string& path, Random& random);

// The holder of this lock may rewrite the key file. The lock is released when the process ends,
// however it ends.
Result<Fd> lock_key_file(const std::string& path);

// Leaves either the old keys or the new ones, never a mix, even after a power cut. A symbolic link
// remains one.
Result<> replace_key_file(const std::string& path, const KeyRing& ring);

}  // namespace berth::vault
