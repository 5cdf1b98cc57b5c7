#pragma once

#include "core/page.hpp"
#include "http/endpoint.hpp"

// Path and query values that several tables share.
namespace berth::http {

struct CompanyPath {
  core::CompanyId company;
};
BOOST_DESCRIBE_STRUCT(CompanyPath, (), (company))

struct EnvironmentPath {
  core::EnvironmentId environment;
};
BOOST_DESCRIBE_STRUCT(EnvironmentPath, (), (environment))

struct LeasePath {
  core::LeaseId lease;
};
BOOST_DESCRIBE_STRUCT(LeasePath, (), (lease))

struct PageQuery {
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(PageQuery, (), (limit, after))

// A number in a query, or its default.
struct Bounds {
  std::int64_t usual;
  std::int64_t least;
  std::int64_t most;
};
inline constexpr Bounds any_offset{
    .usual = 0, .least = 0, .most = std::numeric_limits<std::int64_t>::max()};
// How long a call may wait for an event.
inline constexpr Bounds wait_seconds{.usual = 0, .least = 0, .most = 60};

Result<std::int64_t> bounded(std::string_view parameter, const std::optional<std::int64_t>& given,
                             Bounds bounds);

// Reads `limit` and `after` from a query and calls the use case with that page.
template <class Query, class Call>
auto with_page(Query query, Call call) -> std::invoke_result_t<Call&, core::PageRequest> {
  BERTH_CO_TRY(core::PageRequest page, core::parse_page(query.limit, query.after));
  co_return co_await call(std::move(page));
}

}  // namespace berth::http
