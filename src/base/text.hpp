#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Text from outside on its way into a sentence, a JSON pointer or the log.
namespace berth {

// The bytes of the UTF-8 character at the start of the text; 0 when none begins there or it is cut.
std::size_t character_length(std::string_view text);
// The bytes at the end of the text that begin a UTF-8 character whose rest is still to come.
std::size_t cut_character_length(std::string_view text);
// The longest start of the text that fits and does not end inside a character.
std::string_view clipped(std::string_view text, std::size_t bytes_max);
bool is_utf8(std::string_view text);
// Of one whole UTF-8 character.
std::uint32_t code_point(std::string_view character);
// Whether nobody sees a character, or it turns those beside it round: with it one name looks like
// another. What a terminal obeys is not meant.
bool is_unseen(std::uint32_t point);
// The text with '?' for every byte that is no part of a UTF-8 character.
std::string as_utf8(std::string_view text);
// "'staging'": what somebody wrote, short enough and clean enough to be quoted back to them.
std::string in_quotes(std::string_view text);

}  // namespace berth
