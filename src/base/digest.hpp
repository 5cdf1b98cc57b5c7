#pragma once

#include <array>
#include <string>
#include <string_view>

namespace berth {

// The SHA-256 of the bytes, as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
// HMAC with SHA-256 (RFC 2104): only a holder of the key can compute it.
std::array<unsigned char, 32> hmac_sha256(std::string_view key, std::string_view bytes);
// Takes the same time wherever two texts of one length differ, so that timing reveals nothing to a
// forger.
bool equal_in_constant_time(std::string_view left, std::string_view right);

}  // namespace berth
