#pragma once

#include "base/owned.hpp"
#include "vault/key.hpp"

#include <string>

namespace berth::vault {

// Reads the keys of a file that belongs to us and that nobody else can read: its mode and owner are
// checked on the descriptor that is read, so that no swap of the name comes between. A symbolic
// link is followed, and what it leads to is held to the same rules.
Result<KeyRing> read_key_file(const std::string& path);

// Of all who try at once, one makes the file; everybody then reads the same keys.
Result<KeyRing> create_key_file(const std::string& path, Random& random);

// Whoever holds it may rewrite the key file. Let go of when the process ends, however it ends.
Result<Fd> lock_key_file(const std::string& path);

// The old keys or the new ones, never a part, also after a power cut. A symbolic link stays one.
Result<> replace_key_file(const std::string& path, const KeyRing& ring);

}  // namespace berth::vault
