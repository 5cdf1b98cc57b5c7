#include "http/server/message/message.hpp"

#include <gtest/gtest.h>

namespace berth::http {
namespace {

TEST(Status, EveryCauseIsAnErrorStatus){
#define X(name, kind)                              \
  EXPECT_GE(status_of(Errc::name), 400U) << #name; \
  EXPECT_LT(status_of(Errc::name), 600U) << #name;
    BERTH_ERRC_LIST(X)
#undef X
}

TEST(Status, AnErrorCarriesItsRemedyIssuesAndFacts) {
  Error error{Errc::environment_delete_blocked, "environment Local: is in use", "stop its runs"};
  error.issues = {{"/name", "is empty"}};
  error.facts = {{"deleteBlockedReasons", {"managed_local"}}};
  const Response response = error_response(error);
  EXPECT_EQ(response.status, 409U);
  EXPECT_EQ(parse_json(response.body), parse_json(R"({"error":"environment Local: is in use",
                           "code":"environment_delete_blocked","remedy":"stop its runs",
                           "details":{"issues":[{"path":"/name","message":"is empty"}],
                                      "deleteBlockedReasons":["managed_local"]}})"));
}

TEST(Status, AClassificationIsAWordAndNoList) {
  Error error{Errc::conflict, "drifted"};
  error.facts = {{"classification", {"boot_source_drift"}}, {"driftedPaths", {"image"}}};
  EXPECT_EQ(parse_json(error_response(error).body), parse_json(R"({"error":"drifted",
                "code":"conflict","details":{"classification":"boot_source_drift",
                                             "driftedPaths":["image"]}})"));
}

TEST(Status, WhatAnErrorDoesNotHaveIsAbsent) {
  EXPECT_EQ(error_response(Error{Errc::forbidden, "no"}).body,
            R"({"error":"no","code":"forbidden"})");
}

TEST(Status, SomeStatusesNeedAHeaderField) {
  EXPECT_EQ(error_response(Error{Errc::unauthenticated, "x"}).header("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(error_response(Error{Errc::overloaded, "x"}).header("Retry-After"), "1");
  Error refused{Errc::method_not_allowed, "x"};
  refused.facts = {{"allow", {"GET", "HEAD"}}};
  EXPECT_EQ(error_response(refused).header("allow"), "GET, HEAD");
}

}  // namespace
}  // namespace berth::http
