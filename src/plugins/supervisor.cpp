#include "plugins/supervisor.hpp"

#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "core/config/bindings.hpp"
#include "plugins/box.hpp"

#include <algorithm>
#include <array>

namespace berth::plugins {
namespace {

using namespace std::chrono_literals;

constexpr int log_lines_per_second_max = 200;
constexpr std::size_t log_line_max = 8'000;
constexpr std::size_t last_words_max = 8'000;
constexpr std::size_t resolved_max = 200;
constexpr int jitter_percent = 25;
constexpr auto told_for = 15min;  // the scope of a notification
constexpr std::size_t told_max = 1'000;

Condition::Moment moment_in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

CallResult refused(CallFailure::Cause cause, std::string why) {
  return std::unexpected(CallFailure{cause, rpc_code::worker_unavailable, std::move(why)});
}

// The company that a call is for: the worker may then request that company's data.
std::optional<std::string> company_of(const bj::object& params) {
  std::optional<std::string> company = text_in(params, "companyId");
  if (company && company->find_first_not_of(" \t") == std::string::npos) return std::nullopt;
  return company;
}

// Methods whose params are stored for users to read.
bool is_told_to_people(std::string_view method) {
  return method == "log" || method == "metrics.write" || method == "activity.log" ||
         method == "events.emit";
}

// What is known about a call while it is open.
class OpenCall {
 public:
  OpenCall(OpenInvocations& invocations, OutputRoutes& outputs, std::string id)
      : invocations_(invocations), outputs_(outputs), id_(std::move(id)) {}
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;
  ~OpenCall() {
    outputs_.close(id_);
    invocations_.companies.erase(id_);
  }

  bj::object open(const std::string& company, LiveOutput* output) {
    invocations_.companies[id_] = company;
    if (output != nullptr) outputs_.open(id_, company, *output);
    return {{"id", id_}, {"scope", bj::object{{"companyId", company}}}};
  }

 private:
  OpenInvocations& invocations_;
  OutputRoutes& outputs_;
  std::string id_;
};

}  // namespace

Supervisor::Supervisor(asio::any_io_executor executor, const HostConfig& config,
                       HostServices& services, Clock& clock, Random& random, InstalledPlugin plugin,
                       std::optional<WorkerUser> user)
    : executor_(executor),
      config_(config),
      services_(services),
      clock_(clock),
      random_(random),
      plugin_(std::move(plugin)),
      user_(user),
      streams_(executor),
      waiters_(executor),
      tasks_(executor) {}

Supervisor::~Supervisor() = default;

PluginStatus Supervisor::status() const {
  PluginStatus status{.id = plugin_.id,
                      .plugin_key = plugin_.manifest.id,
                      .state = state_,
                      .reason = reason_,
                      .crashes = crashes_,
                      .running_since = running_since_time_,
                      .methods = methods_,
                      .box = box_};
  if (worker_ && !worker_->exit()) status.pid = worker_->pid();
  return status;
}

void Supervisor::enter(WorkerState state, std::string reason) {
  if (state_ == state && reason_ == reason) return;
  state_ = state;
  reason_ = std::move(reason);
  const bool running = state == WorkerState::running;
  running_since_ = running ? std::optional{clock_.steady()} : std::nullopt;
  running_since_time_ = running ? std::optional{clock_.now()} : std::nullopt;
  if (!running) methods_.clear();
  log::info("plugin.state", {{"plugin", plugin_.id},
                             {"key", plugin_.manifest.id},
                             {"state", name_of(state)},
                             {"reason", clipped(reason_, log_line_max)}});
  const bool is_down = state == WorkerState::error || state == WorkerState::backing_off;
  services_.state_changed(
      plugin_.id, state,
      {.sentence = reason_, .worker_said = is_down ? last_words_ : std::string{}});
  waiters_.notify();
}

void Supervisor::remember(std::string_view line) {
  last_words_ += line;
  last_words_ += '\n';
  if (last_words_.size() <= last_words_max) return;
  // Whole lines only: half a line may be half a mark.
  const std::size_t cut = last_words_.find('\n', last_words_.size() - last_words_max);
  last_words_.erase(0, std::min(cut, last_words_.size() - 1) + 1);
}

Task<> Supervisor::start() {
  ++starting_;
  Result<> launched = co_await launch();
  if (launched && !stopping_) {
    watching_ = true;
    tasks_.start("plugin.watch", watch());
  } else {
    if (launched)
      launched = fail(Errc::plugin_not_ready, plugin_.manifest.id + " is being stopped");
    co_await bury();
    if (!stopping_) enter(WorkerState::error, launched.error().message);
    launched.error().message =
        StateReason{.sentence = launched.error().message, .worker_said = last_words_}.text();
  }
  --starting_;
  waiters_.notify();
  co_return launched;
}

Task<> Supervisor::launch() {
  enter(WorkerState::starting, "");
  last_words_.clear();
  HostEnvironment environment = config_.environment;
  environment["PAPERCLIP_DEPLOYMENT_MODE"] = config_.instance.deployment_mode;
  environment["PAPERCLIP_DEPLOYMENT_EXPOSURE"] = config_.instance.deployment_exposure;
  BERTH_CO_TRY(const WorkerCommand command,
               worker_command(plugin_.manifest, plugin_.package, plugin_.id.str(), environment));
  std::vector<Secret> keys;
  for (const auto& [name, value] : command.environment) {
    if (core::looks_sensitive(name)) keys.emplace_back(value);
  }
  own_keys_ = given_.hold(keys);
  BERTH_CO_TRY(keeper::PluginBox box, box_of(config_, plugin_, user_, command));
  const Launching launching{.keeper_program = config_.keeper_program,
                            .user = user_,
                            .memory_bytes_max = config_.memory_bytes_max,
                            .box = std::move(box)};
  BERTH_CO_TRY(worker_, Worker::spawn(executor_, command, launching, *this, this, config_.channel));
  Result<> greeted = co_await enter_box();
  if (greeted) greeted = co_await greet();
  if (!greeted && worker_) worker_->kill(greeted.error().message);
  co_return greeted;
}

Task<> Supervisor::enter_box() {
  const std::shared_ptr<Worker> worker = worker_;
  BERTH_CO_TRY(
      keeper::BoxArrivals arrived,
      co_await read_box_report(executor_, worker->take_report(), config_.initialize_deadline));
  box_ = std::move(arrived.report);
  log::info("plugin.box", {{"plugin", plugin_.id},
                           {"key", plugin_.manifest.id},
                           {"isolation", keeper::name_of(box_.level)}});
  if (config_.way_out == nullptr || box_.level != keeper::BoxLevel::strong) co_return Result<>{};
  BERTH_CO_DO(co_await config_.way_out->close(plugin_.id));
  WayOut::Request wanted{
      .plugin = plugin_.id, .allow = plugin_.egress, .sockets = std::move(arrived.sockets)};
  co_return config_.way_out->open(std::move(wanted));
}

Task<> Supervisor::greet() {
  const std::shared_ptr<Worker> worker = worker_;
  // Before the worker can send requests: the companies that it may name without a call of ours.
  BERTH_CO_TRY(const std::vector<CompanyConfig> configs, co_await services_.configs(plugin_.id));
  invocations_.configured.clear();
  for (const CompanyConfig& one : configs) invocations_.configured.insert(one.company_id.str());
  Result<Greeting> greeting =
      co_await initialize(*worker, plugin_.manifest, config_.instance, config_.initialize_deadline);
  if (!greeting && greeting.error().code == Errc::plugin_call_failed) {
    remember(given_.clean(greeting.error().message));
    greeting.error().message = "initialize: the worker answered with an error";
  }
  if (!greeting) co_return std::unexpected(std::move(greeting).error());
  if (stopping_) co_return fail(Errc::plugin_not_ready, plugin_.manifest.id + " is being stopped");
  if (worker->exit()) co_return fail(Errc::plugin_unavailable, worker->end_record());
  methods_ = greeting->methods;
  enter(WorkerState::running, "");
  co_return co_await send_configs();
}

Task<> Supervisor::send_configs() {
  BERTH_CO_TRY(std::vector<CompanyConfig> configs, co_await services_.configs(plugin_.id));
  for (CompanyConfig& one : configs) {
    BERTH_CO_DO(co_await send_config(std::move(one.company_id), std::move(one.config)));
  }
  co_return Result<>{};
}

Task<> Supervisor::send_config(core::CompanyId company, bj::object config) {
  PluginCall told{.method = "configChanged",
                  .params = {{"config", std::move(config)}, {"companyId", company.str()}}};
  const CallResult heard = co_await call(std::move(told));
  if (heard) co_return Result<>{};
  log({.level = LogLevel::warn,
       .source = "host",
       .message = "configChanged for company " + company.str() + ": " + heard.error().message,
       .company_id = company});
  co_return Result<>{};
}

Task<> Supervisor::config_changed(core::CompanyId company, bj::object config) {
  invocations_.configured.insert(company.str());
  if (!is_running()) co_return Result<>{};
  co_return co_await send_config(std::move(company), std::move(config));
}

Task<> Supervisor::watch() {
  while (!stopping_) {
    if (worker_) {
      const std::shared_ptr<Worker> worker = worker_;
      BERTH_CO_DO(co_await worker->ended());
      if (stopping_) break;
      reason_ = worker->end_record();
    }
    const std::string why = reason_;
    if (running_since_ && clock_.steady() - *running_since_ >= config_.back_off.healthy_after) {
      crashes_ = 0;
    }
    // Set immediately, together with the count, so that an ended worker never appears as running.
    const bool crashes_on = ++crashes_ > config_.back_off.crashes_max;
    const bool hopeless = crashes_on || expelled_;
    std::string told = why;
    if (crashes_on) {
      told = "the worker crashed " + std::to_string(crashes_) + " times in a row: " + why;
    }
    enter(hopeless ? WorkerState::error : WorkerState::backing_off, expelled_.value_or(told));
    BERTH_CO_DO(co_await bury());
    if (hopeless || stopping_) break;
    BERTH_CO_DO(co_await waiters_.wait_for([this] { return stopping_ || expelled_; },
                                           moment_in(next_delay())));
    if (stopping_) break;
    if (expelled_) continue;
    const Result<> launched = co_await launch();
    if (!launched) reason_ = launched.error().message;
  }
  watching_ = false;
  waiters_.notify();
  co_return Result<>{};
}

// Everything that was open with the ended worker ends with it.
Task<> Supervisor::bury() {
  const std::shared_ptr<Worker> worker = std::exchange(worker_, nullptr);
  if (!worker) co_return Result<>{};
  streams_.end_all("the worker is gone");
  resolved_.clear();
  for (const auto& [until, id] : told_) invocations_.companies.erase(id);
  told_.clear();
  Result<> closed = co_await worker->close();
  if (config_.way_out != nullptr) {
    const Result<> shut = co_await config_.way_out->close(plugin_.id);
    if (closed) closed = shut;
  }
  co_return closed;
}

std::chrono::milliseconds Supervisor::next_delay() {
  const BackOff& by = config_.back_off;
  auto delay = by.first;
  for (int i = 1; i < crashes_ && delay < by.longest; ++i) delay *= 2;
  std::array<unsigned char, 1> byte{};
  random_.fill(byte);
  const int percent = 100 - jitter_percent + byte[0] % (2 * jitter_percent + 1);
  return std::min(by.longest, delay * percent / 100);
}

Task<> Supervisor::stop() {
  stopping_ = true;
  waiters_.notify();
  const std::shared_ptr<Worker> worker = worker_;
  if (worker) {
    const bool polite = is_running();
    if (state_ != WorkerState::error) enter(WorkerState::stopping, "");
    if (polite) {
      BERTH_CO_DO(co_await worker->stop(config_.stop_times));
    } else {
      worker->kill("the plugin was stopped while it started");
    }
  }
  BERTH_CO_DO(co_await waiters_.wait_for([this] { return starting_ == 0 && !watching_; },
                                         moment_in(config_.initialize_deadline + 10s)));
  BERTH_CO_DO(co_await bury());
  BERTH_CO_DO(co_await tasks_.stop());
  enter(WorkerState::stopped, "");
  co_return Result<>{};
}

Task<> Supervisor::ready() {
  const auto settled = [this] {
    return is_running() || stopping_ || state_ == WorkerState::error ||
           state_ == WorkerState::stopped;
  };
  BERTH_CO_DO(co_await waiters_.wait_for(settled, moment_in(config_.ready_wait)));
  if (is_running()) co_return Result<>{};
  std::string why = "plugin " + plugin_.manifest.id + " is " + std::string{name_of(state_)};
  if (!reason_.empty()) why += ": " + reason_;
  co_return fail(Errc::plugin_not_ready, std::move(why),
                 "look at the plugin's log, mend it, and enable it again");
}

asio::awaitable<CallResult> Supervisor::call(PluginCall call) {
  const std::shared_ptr<Worker> worker = worker_;
  if (!worker || state_ != WorkerState::running) {
    co_return refused(CallFailure::Cause::gone, "Cannot call \"" + call.method +
                                                    "\" - worker for \"" + plugin_.manifest.id +
                                                    "\" is " + std::string{name_of(state_)});
  }
  CallOptions options{.deadline = call.deadline};
  std::optional<OpenCall> open;
  if (const auto company = company_of(call.params)) {
    open.emplace(invocations_, outputs_, make_uuid(random_, clock_.now()));
    options.invocation = open->open(*company, call.output);
  }
  CallResult result = co_await worker->channel().call(std::move(call.method),
                                                      std::move(call.params), std::move(options));
  if (!result) result.error().message = given_.clean(result.error().message);
  co_return result;
}

bool Supervisor::tell(std::string_view method, const bj::object& params,
                      const core::CompanyId& company) {
  if (!worker_ || state_ != WorkerState::running) return false;
  const Clock::Steady now = clock_.steady();
  while (!told_.empty() && (told_.front().first <= now || told_.size() >= told_max)) {
    invocations_.companies.erase(told_.front().second);
    told_.pop_front();
  }
  const std::string id = make_uuid(random_, clock_.now());
  const bj::object invocation{{"id", id}, {"scope", bj::object{{"companyId", company.str()}}}};
  if (!worker_->channel().notify(method, params, invocation)) return false;
  invocations_.companies[id] = company.str();
  told_.emplace_back(now + told_for, id);
  return true;
}

void Supervisor::punish(std::string why) {
  log({.level = LogLevel::error, .source = "host", .message = why});
  if (worker_) worker_->kill(std::move(why));
}

void Supervisor::expel(std::string why) {
  if (stopping_ || expelled_) return;
  expelled_ = why;
  punish(std::move(why));
  waiters_.notify();
}

asio::awaitable<Reply> Supervisor::answer(Request request) {
  const auto admitted = admit(request, plugin_.manifest, context_of(request, invocations_));
  if (!admitted) co_return std::unexpected(admitted.error());
  if (!services_.has(request.method)) {
    co_return std::unexpected(
        RpcError{rpc_code::method_not_found, "The host does not offer \"" + request.method + "\""});
  }
  RequestScope scope{.plugin_id = plugin_.id, .plugin_key = plugin_.manifest.id};
  if (*admitted) {
    if (auto company = core::CompanyId::parse(**admitted)) scope.company_id = *std::move(company);
  }
  bj::object params =
      request.params.is_object() ? std::move(request.params.get_object()) : bj::object{};
  if (is_told_to_people(request.method)) params = given_.clean_json(params).as_object();
  const bool is_secret = request.method == "secrets.resolve";
  Result<bj::value> answer =
      co_await services_.answer(std::move(scope), std::move(request.method), std::move(params));
  if (answer && is_secret && answer->is_string()) {
    const bj::string& value = answer->get_string();
    const std::array<Secret, 1> given{Secret{std::string_view{value.data(), value.size()}}};
    resolved_.push_back(given_.hold(given));
    if (resolved_.size() > resolved_max) resolved_.pop_front();
  }
  if (answer) co_return *std::move(answer);
  const bool forbidden = answer.error().code == Errc::forbidden;
  co_return std::unexpected(RpcError{forbidden ? rpc_code::scope_denied : rpc_code::internal,
                                     std::move(answer.error().message)});
}

bool Supervisor::hear(Notification notification) {
  const std::string& method = notification.method;
  if (method == "execute.log") return outputs_.take(notification);
  if (method == "log") return hear_log(notification);
  if (method.starts_with("loginPty.") || method.starts_with("setupTokenPty.") ||
      method.starts_with("duplexChannel.")) {
    const Result<bool> taken =
        streams_.take(notification, dialect() == Dialect::c ? Payload::base64 : Payload::text);
    if (!taken) punish(taken.error().message);
    return taken.value_or(false);
  }
  return false;
}

std::optional<core::CompanyId> Supervisor::company_of_invocation(
    const Notification& notification) const {
  if (!notification.invocation_id) return std::nullopt;
  const auto found = invocations_.companies.find(*notification.invocation_id);
  if (found == invocations_.companies.end()) return std::nullopt;
  Result<core::CompanyId> company = core::CompanyId::parse(found->second);
  return company ? std::optional{*std::move(company)} : std::nullopt;
}

bool Supervisor::hear_log(const Notification& notification) {
  if (!may_log() || !notification.params.is_object()) return false;
  const bj::object& params = notification.params.get_object();
  const auto level = parse_name<LogLevel>(text_in(params, "level").value_or("info"));
  log({.level = level.value_or(LogLevel::info),
       .message = text_in(params, "message").value_or(""),
       .meta = peek<bj::object>(params, "meta").value_or(bj::object{}),
       .company_id = company_of_invocation(notification)});
  return true;
}

void Supervisor::unread(std::string_view why, std::string_view start_of_line) {
  // An error during a login may contain the token that the login gave.
  const std::string shown = streams_.has_login() ? "not shown during a login"
                                                 : as_utf8(given_.clean_beginning(start_of_line));
  log({.level = LogLevel::warn,
       .source = "stdout",
       .message = "a line on its output is not a message, " + std::string{why} + ": " + shown});
}

void Supervisor::read_stderr(std::string_view line, LinePart part) {
  if (streams_.has_login()) return;  // it may hold the token that the login gave
  const std::string shown =
      as_utf8(part == LinePart::whole ? given_.clean(line) : given_.clean_beginning(line));
  remember(shown);
  if (may_log()) log({.level = LogLevel::warn, .source = "stderr", .message = shown});
}

bool Supervisor::may_log() {
  const Clock::Steady now = clock_.steady();
  if (now - log_second_ >= 1s) {
    if (logged_in_second_ > log_lines_per_second_max) {
      log({.level = LogLevel::warn,
           .source = "host",
           .message = std::to_string(logged_in_second_ - log_lines_per_second_max) +
                      " lines were dropped"});
    }
    log_second_ = now;
    logged_in_second_ = 0;
  }
  return ++logged_in_second_ <= log_lines_per_second_max;
}

void Supervisor::log(PluginLogLine line) {
  const std::string message = given_.clean(line.message);
  line.message = clipped(message, log_line_max);
  line.meta = given_.clean_json(line.meta).as_object();
  services_.log(plugin_.id, std::move(line));
}

}  // namespace berth::plugins
