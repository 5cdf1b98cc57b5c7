#include "places/ssh/master.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

namespace berth::places::ssh {
namespace {

constexpr std::string_view ready_line = "connected";
constexpr std::int64_t usual_port = 22;
constexpr std::size_t noise_bytes_max = std::size_t{64} << 10;
constexpr std::size_t said_bytes_max = std::size_t{16} << 10;
constexpr std::chrono::milliseconds login_limit{20'000};  // after the connection is established
constexpr std::chrono::milliseconds end_limit{3'000};
constexpr std::chrono::milliseconds last_words_limit{2'000};

// ssh finds its home in the user database. It needs a PATH for LocalCommand's shell, and a fixed
// language for its messages.
std::vector<std::string> environment(const Options& options, IdentityKind identity) {
  std::vector<std::string> variables{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"};
  if (identity != IdentityKind::key && options.agent_socket) {
    variables.push_back("SSH_AUTH_SOCK=" + *options.agent_socket);
  }
  return variables;
}

class Arguments {
 public:
  Arguments& set(std::string_view name, const std::string& value) {
    words_.emplace_back("-o");
    words_.push_back(std::string{name} + "=" + value);
    return *this;
  }
  Arguments& add(std::string word) {
    words_.push_back(std::move(word));
    return *this;
  }
  std::vector<std::string> take() { return std::move(words_); }

 private:
  // Ignores the user's and the machine's settings: only the options set here apply.
  std::vector<std::string> words_{"-F", "none"};
};

Arguments common_arguments(const std::string& socket) {
  Arguments arguments;
  arguments.set("BatchMode", "yes")
      .set("ControlPath", socket)
      .set("ControlPersist", "no")
      .set("LogLevel", "ERROR")
      .set("EscapeChar", "none")
      .set("ForwardAgent", "no")
      .set("ForwardX11", "no")
      .set("ClearAllForwardings", "yes");
  return arguments;
}

void add_host_key(Arguments& arguments, const Target& target, const ShortLivedFile& known_hosts) {
  arguments.set("UpdateHostKeys", "no").set("GlobalKnownHostsFile", "/dev/null");
  arguments.set("StrictHostKeyChecking", target.strict_host_key ? "yes" : "no");
  if (!target.strict_host_key) {
    arguments.set("UserKnownHostsFile", "/dev/null");
  } else if (known_hosts) {
    arguments.set("UserKnownHostsFile", known_hosts.get());
  }
}

void add_identity(Arguments& arguments, const Target& target, const ShortLivedFile& key,
                  const Options& options) {
  arguments.set("PreferredAuthentications", "publickey");
  switch (target.identity) {
    case IdentityKind::key:
      arguments.set("IdentitiesOnly", "yes")
          .set("IdentityAgent", "none")
          .set("IdentityFile", key.get());
      break;
    case IdentityKind::agent:
      arguments.set("IdentityAgent", *options.agent_socket).set("IdentityFile", "none");
      break;
    case IdentityKind::ambient: break;
  }
}

// The files that a connection needs during its login.
struct LoginFiles {
  ShortLivedFile key = {};
  ShortLivedFile known_hosts = {};
};

// The checked address, and the name under which its host key is known.
struct Destination {
  std::string address;
  std::string key_name;
};

std::vector<std::string> login_arguments(const Target& target, const Options& options,
                                         const std::string& socket, const LoginFiles& files,
                                         const Destination& destination) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.connect_limit).count();
  Arguments arguments = common_arguments(socket);
  arguments.set("ControlMaster", "yes")
      .set("ConnectTimeout", std::to_string(seconds))
      .set("ConnectionAttempts", "1")
      .set("ServerAliveInterval", std::to_string(options.alive_interval.count()))
      .set("ServerAliveCountMax", "3")
      .set("TCPKeepAlive", "yes")
      // Runs once the socket listens: ssh gives no other notice of that.
      .set("PermitLocalCommand", "yes")
      .set("LocalCommand", "echo " + std::string{ready_line});
  add_host_key(arguments, target, files.known_hosts);
  add_identity(arguments, target, files.key, options);
  // A host given as an address needs neither, and ssh knows best how to write its key's name.
  if (destination.address != target.host) {
    arguments.set("HostName", destination.address).set("HostKeyAlias", destination.key_name);
  }
  arguments.set("Port", std::to_string(target.port)).set("User", target.username);
  arguments.add("-N").add("-T").add("--").add(target.host);
  return arguments.take();
}

ProgramCall login_call(std::vector<std::string> arguments, const Options& options,
                       IdentityKind identity) {
  ProgramCall call{.program = options.ssh_program,
                   .arguments = std::move(arguments),
                   .environment = environment(options, identity)};
  if (::access(options.setpriv_program.c_str(), X_OK) == 0) {
    call.arguments.insert(call.arguments.begin(), {"--pdeathsig", "TERM", options.ssh_program});
    call.program = options.setpriv_program;
  }
  return call;
}

// Distinguishes a key that ssh cannot read, or only with a passphrase, from one that the host
// rejects.
Task<> check_key(const Whom& whom, const ShortLivedFile& key, const Options& options) {
  ProgramCall call{.program = options.keygen_program,
                   .arguments = {"-y", "-P", "", "-f", key.get()},
                   .environment = {"LC_ALL=C"}};
  BERTH_CO_TRY(const Finished end, co_await run_program(std::move(call), {.time = login_limit}));
  if (end.status.is_success()) co_return Result<>{};
  const bool has_passphrase = end.err.contains("passphrase");
  co_return fail(Errc::ssh_key_invalid,
                 whom.name + (has_passphrase ? ": the private key has a passphrase"
                                             : ": the private key cannot be read"),
                 has_passphrase ? "store the key without its passphrase: 'ssh-keygen -p -f FILE'"
                                : "store the whole file as ssh-keygen wrote it");
}

// The name that ssh itself would look up: with the port if that is not the default, but without it
// if the file lists the host only that way. A certificate names no port.
Task<std::string> host_key_name(const Target& target, const ShortLivedFile& known_hosts,
                                const Options& options) {
  std::string host = target.host;
  std::ranges::transform(host, host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (target.port == usual_port || !target.strict_host_key) co_return host;
  const std::string with_port = "[" + host + "]:" + std::to_string(target.port);
  ProgramCall call{.program = options.keygen_program,
                   .arguments = {"-F", with_port},
                   .environment = {"LC_ALL=C"}};
  if (known_hosts) call.arguments.insert(call.arguments.end(), {"-f", known_hosts.get()});
  BERTH_CO_TRY(const Finished end, co_await run_program(std::move(call), {.time = login_limit}));
  std::string_view lines = end.out;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const bool is_key = !line.empty() && line.front() != '#' && !line.starts_with("@cert-");
    if (is_key) co_return with_port;
  }
  co_return host;
}

struct Line {
  bool found = false;
  std::string before;  // what was printed instead, or before
};

asio::awaitable<Line> read_line(asio::posix::stream_descriptor& pipe, std::string_view wanted) {
  const std::string ending = std::string{wanted} + "\n";
  std::array<char, 4096> chunk{};
  Line line;
  while (line.before.size() < noise_bytes_max) {
    const auto [error, got] = co_await pipe.async_read_some(asio::buffer(chunk), tuple_awaitable);
    if (error) break;
    line.before.append(chunk.data(), got);
    line.found = line.before.ends_with(ending);
    if (line.found) break;
  }
  co_return line;
}

asio::awaitable<std::string> read_rest(asio::posix::stream_descriptor& pipe) {
  std::array<char, 4096> chunk{};
  std::string text;
  while (text.size() < said_bytes_max) {
    const auto [error, got] = co_await pipe.async_read_some(asio::buffer(chunk), tuple_awaitable);
    if (error) break;
    text.append(chunk.data(), got);
  }
  co_return text;
}

}  // namespace

Master::Master(ChildProcess child, ShortLivedFile socket, const Target& target,
               const HostAddress& address, const Options& options)
    : child_(std::move(child)),
      socket_(std::move(socket)),
      options_(options),
      whom_{.name = target.name(), .host = target.host, .port = target.port},
      username_(target.username),
      is_private_(address.is_private),
      sessions_max_(options.sessions_per_connection) {}

Task<std::shared_ptr<Master>> Master::connect(const Target& target, HostAddress address,
                                              ControlFolder& folder, const Options& options) {
  const auto executor = co_await asio::this_coro::executor;
  const Whom whom{.name = target.name(), .host = target.host, .port = target.port};
  LoginFiles files;
  if (target.identity == IdentityKind::key) {
    BERTH_CO_TRY(files.key, folder.write(target.key.reveal()));
    BERTH_CO_DO(co_await check_key(whom, files.key, options));
  }
  if (!target.known_hosts.empty()) {
    BERTH_CO_TRY(files.known_hosts, folder.write(target.known_hosts + "\n"));
  }
  Destination destination{.address = address.text, .key_name = {}};
  if (destination.address != target.host) {
    BERTH_CO_TRY(destination.key_name, co_await host_key_name(target, files.known_hosts, options));
  }
  ShortLivedFile socket{folder.next_socket()};
  std::vector<std::string> arguments =
      login_arguments(target, options, socket.get(), files, destination);
  const ProgramCall call = login_call(std::move(arguments), options, target.identity);
  BERTH_CO_TRY(ChildProcess child, ChildProcess::start(executor, call));
  child.close_input();
  bool timed_out = false;
  Line line;
  {
    const KillTimer deadline{executor, child, options.connect_limit + login_limit};
    line = co_await read_line(child.output(), ready_line);
    timed_out = deadline.has_struck();
  }
  if (!line.found) {
    const std::string said = timed_out ? "timed out" : co_await read_rest(child.errors());
    Error why = why_not_connected(whom, said);
    const bool is_told = target.private_addresses == PrivateAddresses::reachable;
    if (!is_told && why.code == Errc::ssh_unreachable) why = not_reached(target);
    co_return std::unexpected(std::move(why));
  }
  co_return std::shared_ptr<Master>{
      new Master{std::move(child), std::move(socket), target, address, options}};
}

Result<Session> Master::begin(const std::string& command) {
  Arguments arguments = common_arguments(socket_.get());
  // Without its connection ssh would open one itself, and would not check the host key.
  arguments.set("ControlMaster", "no").set("ProxyCommand", "false");
  arguments.set("Port", std::to_string(whom_.port)).set("User", username_);
  arguments.add("-T").add("--").add(whom_.host).add(command);
  const ProgramCall call{.program = options_.ssh_program,
                         .arguments = arguments.take(),
                         .environment = environment(options_, IdentityKind::key)};
  BERTH_TRY(ChildProcess child, ChildProcess::start(child_.executor(), call));
  return Session{std::move(child), shared_from_this()};
}

Task<> Master::end() {
  const KillTimer deadline{co_await asio::this_coro::executor, child_, end_limit};
  child_.send_signal(SIGTERM);
  BERTH_CO_DO(co_await child_.wait());
  co_return Result<>{};
}

Session::Session(ChildProcess child, std::shared_ptr<Master> master)
    : child_(std::move(child)), master_(std::move(master)) {
  ++master_->sessions_;
}

Session::~Session() {
  if (master_) --master_->sessions_;
}

Task<> Session::wait_for_line(std::string_view line, std::chrono::milliseconds limit) {
  bool timed_out = false;
  Line found;
  {
    const KillTimer deadline{co_await asio::this_coro::executor, child_, limit};
    found = co_await read_line(child_.output(), line);
    timed_out = deadline.has_struck();
  }
  if (found.found) co_return Result<>{};
  if (timed_out) {
    co_return fail(Errc::timed_out, master_->name() + ": the host has not answered within " +
                                        std::to_string(limit.count()) + " ms");
  }
  Error why = co_await why_over();
  co_return std::unexpected(std::move(why));
}

Task<> Session::end() {
  child_.send_signal(SIGKILL);
  BERTH_CO_DO(co_await child_.wait());
  co_return Result<>{};
}

asio::awaitable<Error> Session::why_over() {
  std::string said;
  ExitStatus status;
  {
    const KillTimer deadline{co_await asio::this_coro::executor, child_, last_words_limit};
    said = co_await read_rest(child_.errors());
    const Result<ExitStatus> waited = co_await child_.wait();
    if (waited) status = *waited;
  }
  if (is_out_of_sessions(said)) master_->note_refusal();
  // 255 is ssh's own status; any other is the remote command's.
  if (status.code && *status.code != 255) {
    co_return why_not_done(Errc::ssh_failed, master_->whom_.name + ": the shell of the user failed",
                           said, "log in by hand and see whether the shell starts");
  }
  co_return why_no_session(master_->whom_, said);
}

}  // namespace berth::places::ssh
