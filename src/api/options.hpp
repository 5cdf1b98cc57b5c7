#pragma once

#include "api/operation.hpp"

#include <initializer_list>
#include <limits>

// Targets and options that several tables share.
namespace berth::api {

struct OfCompany {
  core::CompanyId company;
};
BOOST_DESCRIBE_STRUCT(OfCompany, (), (company))

struct OfAgent {
  core::AgentId agent;
};
BOOST_DESCRIBE_STRUCT(OfAgent, (), (agent))

struct OfEnvironment {
  core::EnvironmentId environment;
};
BOOST_DESCRIBE_STRUCT(OfEnvironment, (), (environment))

struct OfLease {
  core::LeaseId lease;
};
BOOST_DESCRIBE_STRUCT(OfLease, (), (lease))

struct OfSandbox {
  core::SandboxId sandbox;
};
BOOST_DESCRIBE_STRUCT(OfSandbox, (), (sandbox))

struct OfTemplate {
  core::TemplateId template_;
};
BOOST_DESCRIBE_STRUCT(OfTemplate, (), (template_))

struct OfSetupSession {
  core::SetupSessionId session;
};
BOOST_DESCRIBE_STRUCT(OfSetupSession, (), (session))

struct OfRun {
  core::RunId run;
};
BOOST_DESCRIBE_STRUCT(OfRun, (), (run))

struct OfSecret {
  core::SecretId secret;
};
BOOST_DESCRIBE_STRUCT(OfSecret, (), (secret))

struct OfToken {
  core::TokenId token;
};
BOOST_DESCRIBE_STRUCT(OfToken, (), (token))

// The target that an id names: a use case that takes a core::RunId acts on a run.
template <class Id>
struct TargetOf;
template <>
struct TargetOf<core::CompanyId> : std::type_identity<OfCompany> {};
template <>
struct TargetOf<core::AgentId> : std::type_identity<OfAgent> {};
template <>
struct TargetOf<core::EnvironmentId> : std::type_identity<OfEnvironment> {};
template <>
struct TargetOf<core::LeaseId> : std::type_identity<OfLease> {};
template <>
struct TargetOf<core::SandboxId> : std::type_identity<OfSandbox> {};
template <>
struct TargetOf<core::TemplateId> : std::type_identity<OfTemplate> {};
template <>
struct TargetOf<core::SetupSessionId> : std::type_identity<OfSetupSession> {};
template <>
struct TargetOf<core::RunId> : std::type_identity<OfRun> {};
template <>
struct TargetOf<core::SecretId> : std::type_identity<OfSecret> {};
template <>
struct TargetOf<core::TokenId> : std::type_identity<OfToken> {};

struct PageOptions {
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(PageOptions, (), (limit, after))

template <class Options>
Result<core::PageRequest> page_of(const Options& options) {
  return core::parse_page(options.limit, options.after);
}

// Clients shared with other control planes name the company beside the object. It is optional, but
// if given it must be the object's company.
struct CompanyOption {
  std::optional<core::CompanyId> company_id;
};
BOOST_DESCRIBE_STRUCT(CompanyOption, (), (company_id))

// A number among the options: its default, and what it may be.
struct Bounds {
  std::int64_t usual;
  std::int64_t least;
  std::int64_t most;
};
inline constexpr Bounds any_offset{
    .usual = 0, .least = 0, .most = std::numeric_limits<std::int64_t>::max()};
// How long a call may wait for an event.
inline constexpr Bounds wait_seconds{.usual = 0, .least = 0, .most = 60};

// "must be from 1 to 500", unless the number is.
std::optional<std::string> out_of_bounds(std::int64_t value, Bounds bounds);

struct BoundedOption {
  std::string_view name;
  const std::optional<std::int64_t>& given;
  Bounds bounds;
};
// Fails with the first option that is out of its bounds.
Result<> check_bounds(std::initializer_list<BoundedOption> options);

}  // namespace berth::api
