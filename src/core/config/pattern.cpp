#include "core/config/pattern.hpp"

#include <re2/re2.h>

namespace berth::core {
namespace {

// For a compiled expression and its match state. Ordinary expressions need a hundredth of it.
constexpr std::int64_t memory_bytes_max = 256L * 1024;

re2::RE2::Options options() {
  re2::RE2::Options made;
  made.set_log_errors(false);
  made.set_max_mem(memory_bytes_max);
  return made;
}

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

Result<Pattern> Pattern::compile(std::string_view text) {
  auto compiled = std::make_shared<const re2::RE2>(piece(text), options());
  if (compiled->ok()) return Pattern{std::move(compiled)};
  return fail(Errc::validation_failed, compiled->error(),
              "write the pattern without look-around, backreferences and large repetitions");
}

std::size_t Pattern::steps_for(std::size_t bytes) const {
  return static_cast<std::size_t>(compiled_->ProgramSize()) * (bytes + 1);
}

bool Pattern::is_found_in(std::string_view text) const {
  return re2::RE2::PartialMatch(piece(text), *compiled_);
}

std::vector<std::string> Pattern::groups_of(std::string_view text) const {
  std::vector<re2::StringPiece> found(
      static_cast<std::size_t>(compiled_->NumberOfCapturingGroups()) + 1);
  const re2::StringPiece subject = piece(text);
  if (!compiled_->Match(subject, 0, subject.size(), re2::RE2::ANCHOR_BOTH, found.data(),
                        static_cast<int>(found.size()))) {
    return {};
  }
  std::vector<std::string> groups;
  for (const re2::StringPiece& group : found) groups.push_back(group.as_string());
  return groups;
}

}  // namespace berth::core
