#pragma once

#include "engine/services.hpp"

namespace berth::engine {

// The database records which master key seals new values. A server with another key file thus
// notices before it seals something that the others cannot open.

// At start: writes the key's id into a new database, or checks that the vault has the key that the
// database names.
Task<> adopt_vault_key(Services& services);
// In a transaction that seals a value: checks that the vault's current key is still the one that
// all servers use.
Result<> expect_vault_key(store::Session& session, Services& services);
// In a rotation, once the new key is durable: from here on all servers seal with it.
Task<> announce_vault_key(Services& services);

}  // namespace berth::engine
