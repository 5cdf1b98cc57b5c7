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

TEST_F(GateTest, AMethodThatTheProtocolDoesNotHaveIsNotFound) {
  EXPECT_EQ(refused(request("root.shell", {})), rpc_code::method_not_found);
}

TEST_F(GateTest, ACapabilityThatTheManifestLacksIsDeniedBeforeAllElse) {
  EXPECT_EQ(refused(request("http.fetch", {}, "call-a")), rpc_code::capability_denied);
  EXPECT_EQ(refused(request("state.set", {{"scopeKind", "instance"}})),
            rpc_code::capability_denied);
}

TEST_F(GateTest, ACompanyIsOnlyThatOfTheOpenCall) {
  const bj::object of_a{{"scopeKind", "company"}, {"scopeId", "a"}};
  const bj::object of_b{{"scopeKind", "company"}, {"scopeId", "b"}};
  EXPECT_EQ(refused(request("state.get", of_a, "call-a")), 0);
  EXPECT_EQ(refused(request("state.get", of_b, "call-a")), rpc_code::scope_denied);
  EXPECT_EQ(refused(request("state.get", of_a, "call-forged")), rpc_code::scope_denied);
  EXPECT_EQ(refused(request("state.get", {{"scopeKind", "company"}}, "call-a")),
            rpc_code::scope_denied);
}

TEST_F(GateTest, WithoutAnInvocationOnlyConfiguredCompaniesCount) {
  EXPECT_EQ(refused(request("config.get", {{"companyId", "b"}})), 0);
  EXPECT_EQ(refused(request("config.get", {{"companyId", "a"}})), rpc_code::scope_denied);
  EXPECT_EQ(refused(request("config.get", {})), rpc_code::scope_denied);
  open_.companies.clear();
  EXPECT_EQ(refused(request("config.get", {})), rpc_code::scope_denied);
}

TEST_F(GateTest, WhatAsksForNoCompanyIsServedEvenWithAForgedInvocation) {
  EXPECT_EQ(refused(request("state.get", {{"scopeKind", "instance"}}, "call-forged")), 0);
}

TEST_F(GateTest, AConfigIsThatOfTheCallWhenNoneIsNamed) {
  const Request asked = request("config.get", {}, "call-a");
  EXPECT_EQ(*admit(asked, manifest_, context_of(asked, open_)), "a");
}

}  // namespace
}  // namespace berth::plugins
