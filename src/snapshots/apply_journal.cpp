#include "snapshots/apply_journal.hpp"

#include "base/digest.hpp"

#include <algorithm>
#include <charconv>

namespace berth::snapshots {
namespace {

constexpr std::string_view journal_magic = "berth apply 1";

void put_field(std::string& out, std::string_view field) {
  out += field;
  out += '\0';
}

void put_state(std::string& out, const std::optional<FileState>& state) {
  if (!state) return put_field(out, "-");
  put_field(out, std::to_string(state->device) + " " + std::to_string(state->inode) + " " +
                     std::to_string(state->bytes) + " " + std::to_string(state->modified_ns) + " " +
                     std::to_string(state->changed_ns) + " " + std::to_string(state->mode));
}

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

bool parse_state(std::string_view text, std::optional<FileState>& state) {
  if (text == "-") return true;
  FileState found;
  if (!take_number(text, found.device) || !take_number(text, found.inode) ||
      !take_number(text, found.bytes) || !take_number(text, found.modified_ns) ||
      !take_number(text, found.changed_ns) || !take_number(text, found.mode)) {
    return false;
  }
  state = found;
  return text.empty();
}

}  // namespace

std::string ApplyJournal::text() const {
  std::string body;
  put_field(body, journal_magic);
  put_field(body, target);
  put_field(body, draft);
  for (const ApplyStep& step : steps) {
    put_field(body, step.path);
    put_field(body, step.slot);
    put_state(body, step.before);
    put_state(body, step.after);
  }
  return body + sha256_hex(body);
}

std::optional<ApplyJournal> ApplyJournal::parse(std::string_view text) {
  constexpr std::size_t digest_bytes = 64;
  if (text.size() < digest_bytes) return std::nullopt;
  std::string_view rest = text.substr(0, text.size() - digest_bytes);
  if (sha256_hex(rest) != text.substr(rest.size())) return std::nullopt;
  const auto next = [&rest] {
    const std::string_view field = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
    return field;
  };
  if (next() != journal_magic) return std::nullopt;
  ApplyJournal journal;
  journal.target = next();
  journal.draft = next();
  while (!rest.empty()) {
    ApplyStep step;
    step.path = next();
    step.slot = next();
    if (!parse_state(next(), step.before) || !parse_state(next(), step.after)) return std::nullopt;
    journal.steps.push_back(std::move(step));
  }
  return journal;
}

}  // namespace berth::snapshots
