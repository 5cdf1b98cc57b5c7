#include "core/output/agent_failure.hpp"

#include "base/strings.hpp"

#include <algorithm>
#include <array>

namespace berth::core {
namespace {

using Needles = std::array<std::string_view, 10>;

// Lower-case phrases from the programs and from the servers they call.
struct Cause {
  Errc code;
  std::string_view lead;
  std::string_view remedy;
  Needles needles;
};

// The first match is the cause, so the more specific ones come first.
constexpr Cause causes[] = {
    {Errc::agent_session_lost,
     "The program does not know the session that it was to go on with",
     "start the agent with a fresh session",
     {"no conversation found with session id", "no rollout found for thread id",
      "requires a valid session id"}},
    {Errc::agent_root_refused,
     "Claude does not skip its permissions as root outside of a sandbox",
     "set permissionMode to acceptEdits, or run the agent as another user or in a sandbox",
     {"cannot be used with root/sudo privileges"}},
    {Errc::agent_instructions_missing,
     "The file with the instructions of the agent is missing",
     "put the text into `instructions` of the agent's config",
     {"system prompt file not found"}},
    {Errc::agent_turn_limit,
     "The agent reached its turn limit",
     "raise maxTurnsPerRun in the config of the agent, or invoke it again to go on",
     {"reached maximum number of turns", "error_max_turns"}},
    {Errc::agent_egress_denied,
     "The egress rules of the environment deny the model's host",
     "add the host to egress.allow in the config of the environment",
     {"egress.allow", "http_request_denied", "no egress rule", "denied by egress"}},
    {Errc::agent_quota_exceeded,
     "The model server refuses more requests for now",
     "wait, or raise the quota of the account that the key belongs to",
     {"credit balance is too low", "insufficient_quota", "rate_limit", "rate limit", "usage limit",
      "current quota", "too many requests", "status 429", "(429)", "billing_error"}},
    {Errc::agent_key_refused,
     "The model server refuses the key",
     "give the agent a valid key as a secret in `env`: ANTHROPIC_API_KEY or CODEX_API_KEY",
     {"invalid api key", "authentication_failed", "not logged in", "failed to authenticate",
      "incorrect api key", "unauthorized", "missing environment variable", "status 401",
      "invalid x-api-key", "authentication_error"}},
    {Errc::agent_model_overloaded,
     "The model server is overloaded",
     "invoke the agent again later, or choose another model",
     {"overloaded", "at capacity", "status 529", "status 503", "service unavailable"}},
    {Errc::agent_model_unknown,
     "The model server does not know the model",
     "set `model` in the config of the agent to one that the key may use, and check the address of "
     "the model server",
     {"issue with the selected model", "model_not_found", "unrecognized_model", "unknown model",
      "model is not supported", "model not found", "unexpected status 404"}},
    {Errc::agent_model_unreadable,
     "The answer of the model server broke off or cannot be read",
     "check the address of the model server, and which proxy answers in its place",
     {"malformed response", "utf8 error", "stream closed before", "failed to parse",
      "error decoding response"}},
    {Errc::agent_model_unreachable,
     "The model server cannot be reached",
     "allow its host in egress.allow of the environment, and check the address of the server",
     {"connection refused", "connectionrefused", "waiting for network", "unable to connect",
      "enotfound", "getaddrinfo", "error sending request", "connection error",
      "stream disconnected", "fetch failed"}},
};

// For the status of the model's last response, when its text is not more specific.
constexpr std::pair<std::int64_t, Errc> causes_by_status[] = {
    {401, Errc::agent_key_refused},      {429, Errc::agent_quota_exceeded},
    {402, Errc::agent_quota_exceeded},   {404, Errc::agent_model_unknown},
    {503, Errc::agent_model_overloaded}, {529, Errc::agent_model_overloaded},
};

std::string lower_words(std::string_view text) {
  std::string out{text};
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool has(std::string_view text, const Cause& cause) {
  return std::ranges::any_of(cause.needles, [&](std::string_view needle) {
    return !needle.empty() && text.contains(needle);
  });
}

const Cause* by_code(Errc code) {
  const auto* found = std::ranges::find(causes, code, &Cause::code);
  return found == std::end(causes) ? nullptr : found;
}

const Cause* cause_of(const AgentFailureFacts& facts, std::string_view text) {
  const std::string words = lower_words(text);
  for (const Cause& cause : causes) {
    if (has(words, cause)) return &cause;
  }
  const std::string word = lower_words(facts.signs.error_word);
  for (const Cause& cause : causes) {
    if (!word.empty() && has(word, cause)) return &cause;
  }
  for (const auto& [status, code] : causes_by_status) {
    if (status == facts.signs.status) return by_code(code);
  }
  return nullptr;
}

// Removes colors and other terminal sequences.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\x1b') {
      const std::size_t end = text.find_first_of("ABCDEFGHJKSTfmnsulh", at);
      if (end == std::string_view::npos) break;
      at = end;
    } else if (c == '\n' || c == '\t') {
      out += ' ';
    } else if (static_cast<unsigned char>(c) >= ' ') {
      out += c;
    }
  }
  return out;
}

std::optional<std::string> last_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find_last_of('\n');
    const std::string_view line = end == std::string_view::npos ? text : text.substr(end + 1);
    std::string words = plain(line);
    if (words.find_first_not_of(' ') != std::string::npos) {
      return words.substr(words.find_first_not_of(' '));
    }
    text = end == std::string_view::npos ? std::string_view{} : text.substr(0, end);
  }
  return std::nullopt;
}

// The program quotes a server's response body verbatim; people need only its message.
std::string readable(std::string_view text) {
  constexpr std::size_t sentence_bytes_max = 1000;
  std::string out{text};
  if (const auto value = parse_json(text); value && value->is_object()) {
    const bj::object* holder = value->get_object().if_contains("error") != nullptr
                                   ? value->get_object().at("error").if_object()
                                   : &value->get_object();
    const bj::value* message = holder != nullptr ? holder->if_contains("message") : nullptr;
    if (message != nullptr && message->is_string() && !message->get_string().empty()) {
      out = std::string{message->get_string()};
    }
  }
  out = plain(out);
  if (out.size() <= sentence_bytes_max) return out;
  return std::string{clipped(out, sentence_bytes_max)} + "...";
}

bool ends_sentence(std::string_view text) {
  return text.ends_with('.') || text.ends_with('!') || text.ends_with('?');
}

}  // namespace

std::optional<std::string> failure_text(const AgentFailureFacts& facts) {
  if (facts.outcome.error) return readable(*facts.outcome.error);
  if (facts.signs.warning) return readable(*facts.signs.warning);
  const auto line = last_line(facts.stderr_text);
  return line ? std::optional{readable(*line)} : std::nullopt;
}

std::optional<Error> explain_failure(const AgentFailureFacts& facts) {
  std::optional<std::string> text = failure_text(facts);
  if (!text && facts.denials.empty()) return std::nullopt;
  if (!text) text = "the program has not said why it failed";
  const Cause* cause = cause_of(facts, *text);
  std::string words = *text;
  while (ends_sentence(words)) words.pop_back();  // a remedy follows
  // A denied host cannot be reached, however the program reports it.
  const bool is_denied =
      !facts.denials.empty() && (cause == nullptr || cause->code == Errc::agent_model_unreachable ||
                                 cause->code == Errc::agent_egress_denied);
  if (is_denied) {
    const Cause* denied = by_code(Errc::agent_egress_denied);
    return Error{denied->code,
                 std::string{denied->lead} + " (" + joined(facts.denials, "; ") + "): " + words,
                 std::string{denied->remedy}};
  }
  if (cause == nullptr) return Error{Errc::command_failed, words, ""};
  return Error{cause->code, std::string{cause->lead} + ": " + words, std::string{cause->remedy}};
}

}  // namespace berth::core
