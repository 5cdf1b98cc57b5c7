#include "plugins/gate.hpp"

#include <gtest/gtest.h>

namespace berth::plugins {
namespace {

Request request(std::string method, bj::object params, std::optional<std::string> id = {}) {
  return {.id = 1, .method = std::move(method), .params = std::move(params), .invocation_id = id};
}

class GateTest : public ::testing::Test {
 protected:
  std::int64_t refused(const Request& asked) {
    const auto answer = admit(asked, manifest_, context_of(asked, open_));
    return answer ? 0 : answer.error().code;
  }

  Manifest manifest_{.id = "acme", .capabilities = {"plugin.state.read", "secrets.read-ref"}};
  OpenInvocations open_{.companies = {{"call-a", "a"}}, .configured = {"b"}};
};

TEST_F(GateTest, a_method_that_the_protocol_does_not_have_is_not_found) {
  EXPECT_EQ(refused(request("root.shell", {})), rpc_code::method_not_found);
}

TEST_F(GateTest, a_capability_that_the_manifest_lacks_is_denied_before_all_else) {
  EXPECT_EQ(refused(request("http.fetch", {}, "call-a")), rpc_code::capability_denied);
  EXPECT_EQ(refused(request("state.set", {{"scopeKind", "instance"}})),
            rpc_code::capability_denied);
}

TEST_F(GateTest, a_company_is_only_that_of_the_open_call) {
  const bj::object of_a{{"scopeKind", "company"}, {"scopeId", "a"}};
  const bj::object of_b{{"scopeKind", "company"}, {"scopeId", "b"}};
  EXPECT_EQ(refused(request("state.get", of_a, "call-a")), 0);
  EXPECT_EQ(refused(request("state.get", of_b, "call-a")), rpc_code::scope_denied);
  EXPECT_EQ(refused(request("state.get", of_a, "call-forged")), rpc_code::scope_denied);
  EXPECT_EQ(refused(request("state.get", {{"scopeKind", "company"}}, "call-a")),
            rpc_code::scope_denied);
}

TEST_F(GateTest, without_an_invocation_only_configured_companies_count) {
  EXPECT_EQ(refused(request("config.get", {{"companyId", "b"}})), 0);
  EXPECT_EQ(refused(request("config.get", {{"companyId", "a"}})), rpc_code::scope_denied);
  EXPECT_EQ(refused(request("config.get", {})), rpc_code::scope_denied);
  open_.companies.clear();
  EXPECT_EQ(refused(request("config.get", {})), rpc_code::scope_denied);
}

TEST_F(GateTest, what_asks_for_no_company_is_served_even_with_a_forged_invocation) {
  EXPECT_EQ(refused(request("state.get", {{"scopeKind", "instance"}}, "call-forged")), 0);
}

TEST_F(GateTest, a_config_is_that_of_the_call_when_none_is_named) {
  const Request asked = request("config.get", {}, "call-a");
  EXPECT_EQ(*admit(asked, manifest_, context_of(asked, open_)), "a");
}

}  // namespace
}  // namespace berth::plugins
