#pragma once

#include "cli/cli.hpp"

#include "support/loopback_server.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace berth::cli {

using tests::http_answer;
using tests::LoopbackServer;
using tests::SeenRequest;

inline constexpr auto company = "0190aaaa-0000-7000-8000-000000000001";
inline constexpr auto other_company = "0190aaaa-0000-7000-8000-000000000009";
inline constexpr auto environment = "0190bbbb-0000-7000-8000-000000000002";

// The program as a shell sees it, against a server with one company and one environment.
class CliTest : public testing::Test {
 protected:
  CliTest() {
    console_.user = 1000;
    console_.variables = {{"HOME", folder_}, {"BERTH_HOME", folder_}, {"BERTH_URL", server_.url()}};
    answers_["GET /api/companies"] =
        http_answer(200, R"([{"id":")" + std::string{company} + R"(","name":"Acme"}])");
    answers_["GET /api/companies/" + std::string{company} + "/environments"] = http_answer(
        200, R"([{"id":")" + std::string{environment} +
                 R"(","name":"Local","driver":"local","status":"active","description":null}])");
    answers_["GET /api/environments/" + std::string{environment}] = http_answer(
        200, R"({"id":")" + std::string{environment} + R"(","name":"Local","envVars":{"A":"1"}})",
        "ETag: \"3\"\r\n");
  }

  int run(std::vector<std::string> arguments) {
    out_.str("");
    err_.str("");
    // Most tests check fields, so they read JSON as programs do.
    if (reads_json_) console_.variables["BERTH_OUTPUT"] = console_.out_is_terminal ? "" : "json";
    return cli::run(arguments, console_, [this](Config config) {
      served_ = std::move(config.settings);
      return 42;
    });
  }
  std::string answer(const SeenRequest& request) {
    const std::size_t target = request.line.find(' ') + 1;
    // A response may be keyed by the path and its first query parameter.
    const auto narrow =
        answers_.find(request.line.substr(0, request.line.find_first_of("& ", target)));
    if (narrow != answers_.end()) return narrow->second;
    const std::string key = request.line.substr(0, request.line.find_first_of("? ", target));
    const auto found = answers_.find(key);
    if (found != answers_.end()) return found->second;
    return http_answer(404, R"({"error":"nothing at )" + key + R"(","code":"route_not_found"})");
  }
  SeenRequest last() const { return server_.seen().back(); }

  const tests::TemporaryFolder temporary_;
  const std::string& folder_ = temporary_.path();
  std::map<std::string, std::string> answers_;
  LoopbackServer server_{[this](const SeenRequest& request) { return answer(request); }};
  std::ostringstream out_;
  std::ostringstream err_;
  Console console_{.out = out_, .err = err_, .in = -1};
  std::optional<Settings> served_;
  bool reads_json_ = true;
};

}  // namespace berth::cli
