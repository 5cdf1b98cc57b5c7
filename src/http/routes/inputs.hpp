#pragma once

#include "api/options.hpp"
#include "http/endpoint.hpp"

// Path and query values of the routes that are not bound to an operation.
namespace berth::http {

using api::any_offset;
using api::Bounds;
using CompanyPath = api::OfCompany;
using LeasePath = api::OfLease;
using RunPath = api::OfRun;

// A number in a query, or its default.
Result<std::int64_t> bounded(std::string_view parameter, const std::optional<std::int64_t>& given,
                             Bounds bounds);

}  // namespace berth::http
