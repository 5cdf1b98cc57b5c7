#pragma once

#include "base/json/peek.hpp"
#include "sdk/about.hpp"
#include "sdk/answer.hpp"
#include "sdk/call.hpp"
#include "sdk/config_form.hpp"
#include "sdk/live_route.hpp"
#include "sdk/local_command.hpp"
#include "sdk/program.hpp"
#include "sdk/values.hpp"
#include "sdk/worker.hpp"

#include <utility>

// A provider is a class with a Config, an about() and its hooks, each a plain member
// function that may block and returns a Result:
//
//   struct Config { std::string image = "debian"; };
//   BOOST_DESCRIBE_STRUCT(Config, (), (image))
//
//   class Mine {
//    public:
//     using Config = ::Config;
//     static sdk::About about();
//     Result<sdk::Lease> acquire_lease(sdk::Call&, const Config&, const sdk::AcquireLease&);
//     ...
//   };
//   int main(int argc, char** argv) { return sdk::serve<Mine>(argc, argv); }
//
// Hooks run on several threads at a time. methods_of() below lists all their names.
namespace berth::sdk {

namespace provider_detail {

template <class Value>
Answer answer_from(Result<Value> result) {
  if (!result) return std::unexpected(Refusal{.error = std::move(result).error()});
  if constexpr (std::is_void_v<Value>) {
    return nullptr;
  } else {
    return without_absent(encode(*result));
  }
}

inline Answer wrong_params(Error error) {
  return std::unexpected(Refusal{.code = rpc::wrong_params, .error = std::move(error)});
}

inline Result<bj::object> config_in(const bj::value& params) {
  std::optional<bj::object> config = peek<bj::object>(params, "config");
  if (config) return *std::move(config);
  return fail(Errc::validation_failed, "/config is not an object");
}

// The provider's own reader if it has one, else that of its struct.
template <class P>
Result<typename P::Config> config_from(const bj::object& given) {
  if constexpr (requires { &P::read_config; }) {
    return P::read_config(given);
  } else {
    return sdk::read_config<typename P::Config>(given);
  }
}

template <class P>
Answer validate(P& provider, const bj::value& params) {
  auto given = config_in(params);
  if (!given) return wrong_params(std::move(given).error());
  const auto config = config_from<P>(*given);
  bj::array errors;
  bj::array warnings;
  if (!config) {
    for (const Issue& issue : config.error().issues) {
      errors.emplace_back(issue.path + " " + issue.message);
    }
    if (errors.empty()) errors.emplace_back(config.error().message);
  } else if constexpr (requires { &P::validate_config; }) {
    const Result<Verdict> verdict = provider.validate_config(*config);
    if (!verdict) return std::unexpected(Refusal{.error = verdict.error()});
    for (const std::string& error : verdict->errors) errors.emplace_back(error);
    for (const std::string& warning : verdict->warnings) warnings.emplace_back(warning);
  }
  bj::object answer{{"ok", errors.empty()}};
  if (config && errors.empty()) {
    answer["normalizedConfig"] = normalized_config(*config, *given);
  }
  if (!errors.empty()) answer["errors"] = std::move(errors);
  if (!warnings.empty()) answer["warnings"] = std::move(warnings);
  return answer;
}

// An environment hook: gets the config beside the request.
template <class P, class Request, class Hook>
Method environment_method(std::string name, P& provider, Hook hook) {
  const auto answer = [&provider, hook](Call& call, const bj::value& params) -> Answer {
    auto given = config_in(params);
    if (!given) return wrong_params(std::move(given).error());
    const auto config = config_from<P>(*given);
    if (!config) return wrong_params(config.error());
    const auto request = decode<Request>(params, UnknownKeys::ignore);
    if (!request) return wrong_params(request.error());
    return answer_from(hook(provider, call, *config, *request));
  };
  return {.name = std::move(name), .answer = answer};
}

template <class P, class Request, class Hook>
Method plain_method(std::string name, P& provider, Hook hook) {
  const auto answer = [&provider, hook](Call& call, const bj::value& params) -> Answer {
    const auto request = decode<Request>(params, UnknownKeys::ignore);
    if (!request) return wrong_params(request.error());
    return answer_from(hook(provider, call, *request));
  };
  return {.name = std::move(name), .answer = answer};
}

// A hook is found by its name alone, so that one with a wrong signature fails to compile, instead
// of being ignored.
#define BERTH_SDK_ENVIRONMENT_HOOK(member, wire, Request)                                    \
  if constexpr (requires { &P::member; }) {                                                  \
    methods.push_back(environment_method<P, Request>(                                        \
        wire, provider, [](P& its, Call& call, const auto& config, const Request& request) { \
          return its.member(call, config, request);                                          \
        }));                                                                                 \
  }
#define BERTH_SDK_PLAIN_HOOK(member, wire, Request)                                             \
  if constexpr (requires { &P::member; }) {                                                     \
    methods.push_back(plain_method<P, Request>(                                                 \
        wire, provider,                                                                         \
        [](P& its, Call& call, const Request& request) { return its.member(call, request); })); \
  }

template <class P>
std::vector<Method> methods_of(P& provider) {
  std::vector<Method> methods;
  if constexpr (requires { &P::health; }) {
    methods.push_back({.name = "health", .answer = [&provider](Call& call, const bj::value&) {
                         return answer_from(Result<Health>{provider.health(call)});
                       }});
  }
  // Without its own check there is nothing to wait for.
  constexpr bool checks = requires { &P::validate_config; };
  methods.push_back({.name = "environmentValidateConfig",
                     .runs = checks ? Method::Runs::on_a_thread : Method::Runs::at_once,
                     .answer = [&provider](Call&, const bj::value& params) {
                       return validate(provider, params);
                     }});
  BERTH_SDK_ENVIRONMENT_HOOK(probe, "environmentProbe", Probe)
  BERTH_SDK_ENVIRONMENT_HOOK(acquire_lease, "environmentAcquireLease", AcquireLease)
  BERTH_SDK_ENVIRONMENT_HOOK(resume_lease, "environmentResumeLease", ResumeLease)
  BERTH_SDK_ENVIRONMENT_HOOK(release_lease, "environmentReleaseLease", EndLease)
  BERTH_SDK_ENVIRONMENT_HOOK(destroy_lease, "environmentDestroyLease", EndLease)
  BERTH_SDK_ENVIRONMENT_HOOK(realize_workspace, "environmentRealizeWorkspace", RealizeWorkspace)
  BERTH_SDK_ENVIRONMENT_HOOK(execute, "environmentExecute", Execute)
  BERTH_SDK_ENVIRONMENT_HOOK(sync_in, "environmentSyncIn", Sync)
  BERTH_SDK_ENVIRONMENT_HOOK(sync_out, "environmentSyncOut", Sync)
  BERTH_SDK_ENVIRONMENT_HOOK(start_setup, "environmentStartInteractiveSetup", StartSetup)
  BERTH_SDK_ENVIRONMENT_HOOK(get_setup, "environmentGetInteractiveSetup", GetSetup)
  BERTH_SDK_ENVIRONMENT_HOOK(capture_template, "environmentCaptureTemplate", CaptureTemplate)
  BERTH_SDK_ENVIRONMENT_HOOK(cancel_setup, "environmentCancelInteractiveSetup", CancelSetup)
  BERTH_SDK_ENVIRONMENT_HOOK(delete_template, "environmentDeleteTemplate", DeleteTemplate)
  BERTH_SDK_PLAIN_HOOK(open_login, "loginPtyOpen", OpenLogin)
  BERTH_SDK_PLAIN_HOOK(type_login, "loginPtyInput", TypeLogin)
  BERTH_SDK_PLAIN_HOOK(stop_login, "loginPtyStop", StopLogin)
  BERTH_SDK_PLAIN_HOOK(close_login, "loginPtyClose", CloseLogin)
  BERTH_SDK_PLAIN_HOOK(open_channel, "duplexChannelOpen", OpenChannel)
  BERTH_SDK_PLAIN_HOOK(write_channel, "duplexChannelWrite", WriteChannel)
  BERTH_SDK_PLAIN_HOOK(stop_channel, "duplexChannelStop", StopChannel)
  BERTH_SDK_PLAIN_HOOK(close_channel, "duplexChannelClose", CloseChannel)
  return methods;
}

#undef BERTH_SDK_ENVIRONMENT_HOOK
#undef BERTH_SDK_PLAIN_HOOK

}  // namespace provider_detail

template <class P>
bj::object manifest(std::string_view worker) {
  constexpr bool sets_up = requires { &P::start_setup; };
  constexpr bool captures = requires { &P::capture_template; };
  constexpr bool deletes = requires { &P::delete_template; };
  constexpr bool logs_in = requires { &P::open_login; };
  constexpr bool streams = requires { &P::open_channel; };
  return manifest_of(P::about(),
                     {.config_schema = config_schema<typename P::Config>(),
                      .sets_up = sets_up,
                      .captures = captures,
                      .deletes_templates = deletes,
                      .logs_in = logs_in,
                      .streams = streams},
                     worker);
}

// The whole program. `--manifest` prints manifest.json; without it the worker talks to its host
// over stdin and stdout until the host ends it. The two optional hooks setup(Call&) and closing()
// run at its start and its end.
template <class P>
int serve(int argc, char** argv) {
  if (is_holder(argc, argv)) return hold_local();
  if (asks_for_manifest(argc, argv)) return print_manifest(manifest<P>(worker_path(argc, argv)));
  P provider;
  Worker::Hooks hooks{.methods = provider_detail::methods_of(provider), .setup = {}, .closing = {}};
  if constexpr (requires { &P::setup; }) {
    hooks.setup = [&provider](Call& call) { return provider.setup(call); };
  }
  if constexpr (requires { &P::closing; }) {
    hooks.closing = [&provider] { provider.closing(); };
  }
  HostPipes pipes = take_host_pipes();
  Worker worker{std::move(hooks), std::move(pipes.in), std::move(pipes.out)};
  worker.run();
}

}  // namespace berth::sdk
