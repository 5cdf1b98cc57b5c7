// plugin_echo: a minimal worker. Answers every request at once, and environmentExecute with as many
// megabytes of live output as its first argument requests.

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr std::size_t chunk_bytes = std::size_t{64} << 10;

void say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::write(STDOUT_FILENO, text.data(), text.size());
    if (sent <= 0) std::exit(0);
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// The text after `key`, up to the first of `stop`. The host always formats its lines in the same
// way.
std::string_view after(std::string_view line, std::string_view key, std::string_view stop) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + key.size());
  return line.substr(0, line.find_first_of(stop));
}

void reply(std::string_view id, std::string_view result) {
  say(R"({"jsonrpc":"2.0","id":)" + std::string{id} + R"(,"result":)" + std::string{result} +
      "}\n");
}

void execute(std::string_view line, std::string_view id) {
  const std::string_view words = after(line, R"("args":[")", "\"");
  std::size_t megabytes = 0;
  std::from_chars(words.data(), words.data() + words.size(), megabytes);
  const std::string_view invocation = after(line, R"("paperclipInvocation":{"id":")", "\"");
  std::string text;
  while (text.size() < chunk_bytes)
    text += "a line of output as commands print them, with \\n at its end\\n";
  const std::string note =
      R"({"jsonrpc":"2.0","method":"execute.log","params":{"stream":"stdout","chunk":")" + text +
      R"("},"paperclipInvocationId":")" + std::string{invocation} + "\"}\n";
  for (std::size_t sent = 0; sent < megabytes * 1'000'000; sent += text.size()) say(note);
  reply(id, R"({"exitCode":0,"timedOut":false,"stdout":"","stderr":""})");
}

void serve(std::string_view line) {
  const std::string_view id = after(line, R"("id":)", ",");
  const std::string_view method = after(line, R"("method":")", "\"");
  if (method == "initialize") {
    reply(id, R"({"ok":true,"supportedMethods":["environmentExecute"]})");
  } else if (method == "environmentExecute") {
    execute(line, id);
  } else {
    reply(id, "null");
  }
  if (method == "shutdown") std::exit(0);
}

}  // namespace

int main() {
  std::string held;
  std::string buffer(std::size_t{64} << 10, '\0');
  while (true) {
    const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size <= 0) return 0;
    held.append(buffer.data(), static_cast<std::size_t>(size));
    std::size_t done = 0;
    for (std::size_t end = held.find('\n'); end != std::string::npos; end = held.find('\n', done)) {
      serve(std::string_view{held}.substr(done, end - done));
      done = end + 1;
    }
    held.erase(0, done);
  }
}
