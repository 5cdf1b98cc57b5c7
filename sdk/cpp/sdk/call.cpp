#include "sdk/call.hpp"

#include "sdk/answer.hpp"

namespace berth::sdk {

void Call::log(Level level, std::string_view message, bj::object meta) {
  bj::object params{{"level", name_of(level)}, {"message", as_utf8(message)}};
  if (!meta.empty()) params["meta"] = std::move(meta);
  notify("log", std::move(params));
}

void Call::output(Stream stream, std::string_view text) {
  if (text.empty()) return;
  notify("execute.log", bj::object{{"stream", name_of(stream)}, {"chunk", text}});
}

Result<bj::object> Call::config() {
  BERTH_TRY(bj::value answer, ask("config.get", bj::object{}));
  return decode<bj::object>(answer);
}

Result<bj::value> Call::state(const StateKey& key) {
  return ask("state.get", without_absent(encode(key)));
}

Result<> Call::set_state(const StateKey& key, bj::value value) {
  bj::value params = without_absent(encode(key));
  params.get_object()["value"] = std::move(value);
  BERTH_DO(ask("state.set", std::move(params)));
  return {};
}

Result<> Call::remove_state(const StateKey& key) {
  BERTH_DO(ask("state.delete", without_absent(encode(key))));
  return {};
}

Result<Secret> Call::secret(bj::object reference, const std::string& config_path) {
  bj::object params{{"secretRef", std::move(reference)}, {"configPath", config_path}};
  BERTH_TRY(const bj::value answer, ask("secrets.resolve", std::move(params)));
  return decode<Secret>(answer);
}

Result<HttpAnswer> Call::fetch(const std::string& url, const HttpRequest& request) {
  bj::object params{{"url", url}, {"init", without_absent(encode(request))}};
  BERTH_TRY(const bj::value answer, ask("http.fetch", std::move(params)));
  return decode<HttpAnswer>(answer, UnknownKeys::ignore);
}

Result<bj::value> Call::ask(std::string_view method, bj::value params) {
  return host_.ask(method, std::move(params), invocation_, limits::ask_limit);
}

void Call::notify(std::string_view method, bj::value params) {
  host_.notify(method, std::move(params), invocation_);
}

}  // namespace berth::sdk
