#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Outside text before it is put into a message, a JSON pointer or the log.
namespace berth {

// The bytes of the UTF-8 character at the start of the text; 0 when there is none or it is cut.
std::size_t character_length(std::string_view text);
// The bytes at the end of the text that begin an incomplete UTF-8 character.
std::size_t cut_character_length(std::string_view text);
// The longest prefix that fits and does not end inside a character.
std::string_view clipped(std::string_view text, std::size_t bytes_max);
bool is_utf8(std::string_view text);
// The code point of one whole UTF-8 character.
std::uint32_t code_point(std::string_view character);
// Whether a character is invisible, or reverses those beside it, so that one name can look like
// another. Terminal control characters are not included.
bool is_unseen(std::uint32_t point);
// The text with '?' for every byte that is not part of a UTF-8 character.
std::string as_utf8(std::string_view text);
// "'staging'": the user's text, short and clean enough to be quoted in a message.
std::string in_quotes(std::string_view text);

}  // namespace berth
