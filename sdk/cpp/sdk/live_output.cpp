#include "sdk/live_output.hpp"

#include "base/text.hpp"

#include <array>

namespace berth::sdk {
namespace {

// A host drops a chunk of more than a million characters.
constexpr std::size_t chunk_bytes_max = 512 * 1024;

}  // namespace

void LiveOutput::add(Stream stream, std::string_view bytes) {
  Half& half = this->half(stream);
  std::string text = std::exchange(half.cut, {});
  text += bytes;
  const std::size_t cut = cut_character_length(text);
  half.cut = text.substr(text.size() - cut);
  text.resize(text.size() - cut);
  say(stream, as_utf8(text));
}

void LiveOutput::say(Stream stream, std::string text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view chunk = clipped(rest, chunk_bytes_max);
    call_.output(stream, chunk);
    rest.remove_prefix(chunk.size());
  }
  Half& half = this->half(stream);
  const std::size_t room = kept_bytes_max - half.kept.size();
  half.is_full = half.is_full || text.size() > room;
  half.kept += clipped(text, room);
}

void LiveOutput::finish(Executed& answer) {
  for (const Stream stream : {Stream::stdout_, Stream::stderr_}) {
    say(stream, as_utf8(std::exchange(half(stream).cut, {})));
  }
  answer.stdout_ = std::move(out_.kept);
  answer.stderr_ = std::move(err_.kept);
  if (!out_.is_full && !err_.is_full) return;
  if (!answer.metadata) answer.metadata.emplace();
  (*answer.metadata)["outputTruncated"] = true;
}

}  // namespace berth::sdk
